CREATE TABLE older_release.ships_filled000000 AS
SELECT
  n AS number,
  TIMESTAMP_ADD(TIMESTAMP '2026-01-05 00:00:00+00', INTERVAL n * 6 MINUTE) AS ts,
  CONCAT('Büsum ', CAST(n AS STRING)) AS name,
  IF(n = 7, CAST('NaN' AS FLOAT64), n / 4) AS speed,
  CAST(n AS NUMERIC) + NUMERIC '0.000000001' AS draught,
  BIGNUMERIC '1234567890.5' + n AS cargo,
  MOD(n, 3) = 0 AS moored,
  DATE_ADD(DATE '1999-12-30', INTERVAL n DAY) AS built,
  DATETIME '2026-01-05 06:07:08.000009' AS docked,
  TIME '23:59:59.000001' AS watch,
  CAST(CONCAT('a', CAST(n AS STRING)) AS BYTES) AS flag,
  JSON '{"b": [1, 2.5, null], "a": "x"}' AS notes,
  IF(MOD(n, 5) = 0, NULL, STRUCT(n / 7 AS lat, -n / 7 AS lon, ['north', 'east'] AS names)) AS home,
  [n, n + 1] AS crew
FROM UNNEST(GENERATE_ARRAY(0, 29)) AS n;

CREATE TABLE older_release.reports_filled000000 AS
SELECT
  TIMESTAMP_ADD(TIMESTAMP '2026-01-05 00:00:00+00', INTERVAL n * 10 MINUTE) AS ts,
  CONCAT('sender ', CAST(MOD(n, 3) AS STRING)) AS sender,
  IF(MOD(n, 2) = 0, NULL, 'all well') AS text,
  n / 3 AS value,
  [STRUCT('Hull' AS port, n AS days), STRUCT('Bergen' AS port, NULL AS days)] AS stops
FROM UNNEST(GENERATE_ARRAY(0, 17)) AS n, UNNEST(GENERATE_ARRAY(0, MOD(n, 3))) AS equal_rows;

CREATE TABLE older_release.ports_filled000000 AS
SELECT
  CONCAT('P', CAST(n AS STRING)) AS code,
  TIMESTAMP_ADD(TIMESTAMP '2026-01-05 00:00:00+00', INTERVAL n * 15 MINUTE) AS ts,
  CAST(n * 2 AS STRING) AS depth,
  n AS berths,
  CONCAT('harbour ', CAST(n AS STRING)) AS harbour,
  STRUCT(CAST(1000 + n AS STRING) AS zip, 'Quay' AS street) AS address
FROM UNNEST(GENERATE_ARRAY(0, 11)) AS n;

CREATE OR REPLACE TABLE older_release.ports_filled000000 AS
SELECT
  code, ts, CAST(depth AS INT64) AS depth, berths,
  STRUCT(address.zip AS zip, address.street AS street, 'Wick' AS city) AS address,
  IF(ts < TIMESTAMP '2026-01-05 02:00:00+00', NULL, CONCAT('pilot ', code)) AS pilots
FROM older_release.ports_filled000000;

UPDATE older_release.ships_filled000000 SET ts = TIMESTAMP '2026-01-05 02:59:00+00' WHERE number = 5;

