BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v0008');
CREATE TABLE audit (
	id INTEGER NOT NULL, 
	at BIGINT NOT NULL, 
	kind TEXT NOT NULL, 
	table_id INTEGER, 
	subject TEXT NOT NULL, 
	outcome TEXT NOT NULL, 
	detail TEXT NOT NULL, 
	CONSTRAINT audit_pk PRIMARY KEY (id), 
	CONSTRAINT audit_table_id_fk FOREIGN KEY(table_id) REFERENCES logical_tables (id)
);
INSERT INTO "audit" VALUES(1,1768250279517000,'register',1,'Ships_filled000000','ok','{"source": "local.older_release.ships_filled000000"}');
INSERT INTO "audit" VALUES(2,1768250279725000,'lease',1,'slice 0','taken','{"epoch": 1, "host": "older-host", "owner": "f4ec2a36-562d-461e-a962-e5b1c5dd9b1b", "taken_from": null}');
INSERT INTO "audit" VALUES(3,1768250279725000,'lease',1,'slice 1','taken','{"epoch": 1, "host": "older-host", "owner": "f4ec2a36-562d-461e-a962-e5b1c5dd9b1b", "taken_from": null}');
INSERT INTO "audit" VALUES(4,1768250280380000,'schema',1,'version 1','recorded','{"by": "f4ec2a36-562d-461e-a962-e5b1c5dd9b1b", "cause": "first sync"}');
INSERT INTO "audit" VALUES(5,1768250281483000,'plan',1,'batches 1 to 6','planned','{"owner": "f4ec2a36-562d-461e-a962-e5b1c5dd9b1b", "run_id": "f4ec2a36-562d-461e-a962-e5b1c5dd9b1b", "slices": [0, 1], "t": "2026-01-12T20:37:59.853956+00:00"}');
INSERT INTO "audit" VALUES(6,1768250305120000,'commit',1,'2026-01-05T00:00|s00','ok','{"batch": 1, "mode": "copy", "quarantined": 0, "read": 0}');
INSERT INTO "audit" VALUES(7,1768250305120000,'commit',1,'2026-01-05T00:00|s01','ok','{"batch": 2, "mode": "copy", "quarantined": 1, "read": 10}');
INSERT INTO "audit" VALUES(8,1768250305120000,'commit',1,'2026-01-05T01:00|s00','ok','{"batch": 3, "mode": "copy", "quarantined": 0, "read": 5}');
INSERT INTO "audit" VALUES(9,1768250305120000,'commit',1,'2026-01-05T01:00|s01','ok','{"batch": 4, "mode": "copy", "quarantined": 0, "read": 5}');
INSERT INTO "audit" VALUES(10,1768250305120000,'commit',1,'2026-01-05T02:00|s00','ok','{"batch": 5, "mode": "copy", "quarantined": 0, "read": 5}');
INSERT INTO "audit" VALUES(11,1768250305120000,'commit',1,'2026-01-05T02:00|s01','ok','{"batch": 6, "mode": "copy", "quarantined": 0, "read": 5}');
INSERT INTO "audit" VALUES(12,1768250305192000,'lease',1,'slice 0','released','{"epoch": 1, "owner": "f4ec2a36-562d-461e-a962-e5b1c5dd9b1b"}');
INSERT INTO "audit" VALUES(13,1768250305192000,'lease',1,'slice 1','released','{"epoch": 1, "owner": "f4ec2a36-562d-461e-a962-e5b1c5dd9b1b"}');
INSERT INTO "audit" VALUES(14,1768250320777000,'validation',1,'ships_filled000000','healthy','{"checks": {"progress": {"message": "nothing is due: BigQuery has no row that Harper should have and was not given", "metadata": {"diagnosis": [], "due_until": "2026-01-12T20:37:26.232408+00:00", "lag_seconds": 27452306.232408, "newest_commit": "2026-01-12T20:38:25.120000+00:00", "now": "2026-01-12T20:38:26.232408+00:00", "overdue_seconds": 0.0, "rows_before_start": 0, "rows_in_future": 0, "rows_waiting": 0, "rows_without_time": 0, "slices_behind": [], "synced_until": "2026-01-05T03:00:00+00:00", "waiting_since": null}, "passed": true, "rows": [], "severity": "warn", "status": "healthy"}, "proof": {"message": "6 cells: 6 proved by stored hash", "metadata": {"cells": {"proved": 6}, "changed": 0, "form": "quick", "missing": 0, "phantom": 0, "rows": 30}, "passed": true, "rows": [], "severity": "warn", "status": "proved"}, "smoke": {"message": "the query finds 10 rows", "metadata": {"from": "2026-01-05T02:00:00+00:00", "rows_found": 10, "to": "2026-01-05T03:00:00+00:00"}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}, "spot": {"message": "10 rows of BigQuery are in Harper and 8 rows of Harper in BigQuery, each the same in every column", "metadata": {"crowded_times_left_out": 0, "read_at_commit": true, "rows_from_bigquery": 10, "rows_from_harper": 8, "rows_kept": 0, "rows_moved_meanwhile": 0, "rows_quarantined": 0, "sample_size": 10, "seed": 1582840098}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}}}');
INSERT INTO "audit" VALUES(15,1768250375562000,'register',2,'Reports_filled000000','ok','{"source": "local.older_release.reports_filled000000"}');
INSERT INTO "audit" VALUES(16,1768250375646000,'lease',2,'slice 0','taken','{"epoch": 1, "host": "older-host", "owner": "dad33f86-69b6-46b4-a54c-523a6f052ce7", "taken_from": null}');
INSERT INTO "audit" VALUES(17,1768250375646000,'lease',2,'slice 1','taken','{"epoch": 1, "host": "older-host", "owner": "dad33f86-69b6-46b4-a54c-523a6f052ce7", "taken_from": null}');
INSERT INTO "audit" VALUES(18,1768250376009000,'schema',2,'version 1','recorded','{"by": "dad33f86-69b6-46b4-a54c-523a6f052ce7", "cause": "first sync"}');
INSERT INTO "audit" VALUES(19,1768250376419000,'plan',2,'batches 1 to 6','planned','{"owner": "dad33f86-69b6-46b4-a54c-523a6f052ce7", "run_id": "dad33f86-69b6-46b4-a54c-523a6f052ce7", "slices": [0, 1], "t": "2026-01-12T20:39:35.711774+00:00"}');
INSERT INTO "audit" VALUES(20,1768250396947000,'commit',2,'2026-01-05T00:00|s00','ok','{"batch": 1, "mode": "number", "quarantined": 0, "read": 12}');
INSERT INTO "audit" VALUES(21,1768250396947000,'commit',2,'2026-01-05T00:00|s01','ok','{"batch": 2, "mode": "number", "quarantined": 0, "read": 0}');
INSERT INTO "audit" VALUES(22,1768250396947000,'commit',2,'2026-01-05T01:00|s00','ok','{"batch": 3, "mode": "number", "quarantined": 0, "read": 8}');
INSERT INTO "audit" VALUES(23,1768250396947000,'commit',2,'2026-01-05T01:00|s01','ok','{"batch": 4, "mode": "number", "quarantined": 0, "read": 4}');
INSERT INTO "audit" VALUES(24,1768250396947000,'commit',2,'2026-01-05T02:00|s00','ok','{"batch": 5, "mode": "number", "quarantined": 0, "read": 5}');
INSERT INTO "audit" VALUES(25,1768250396947000,'commit',2,'2026-01-05T02:00|s01','ok','{"batch": 6, "mode": "number", "quarantined": 0, "read": 7}');
INSERT INTO "audit" VALUES(26,1768250396993000,'lease',2,'slice 0','released','{"epoch": 1, "owner": "dad33f86-69b6-46b4-a54c-523a6f052ce7"}');
INSERT INTO "audit" VALUES(27,1768250396993000,'lease',2,'slice 1','released','{"epoch": 1, "owner": "dad33f86-69b6-46b4-a54c-523a6f052ce7"}');
INSERT INTO "audit" VALUES(28,1768250404483000,'validation',2,'reports_filled000000','healthy','{"checks": {"progress": {"message": "nothing is due: BigQuery has no row that Harper should have and was not given", "metadata": {"diagnosis": [], "due_until": "2026-01-12T20:38:57.494866+00:00", "lag_seconds": 27452397.494866, "newest_commit": "2026-01-12T20:39:56.947000+00:00", "now": "2026-01-12T20:39:57.494866+00:00", "overdue_seconds": 0.0, "rows_before_start": 0, "rows_in_future": 0, "rows_waiting": 0, "rows_without_time": 0, "slices_behind": [], "synced_until": "2026-01-05T03:00:00+00:00", "waiting_since": null}, "passed": true, "rows": [], "severity": "warn", "status": "healthy"}, "proof": {"message": "6 cells: 6 proved by stored hash", "metadata": {"cells": {"proved": 6}, "changed": 0, "form": "quick", "missing": 0, "phantom": 0, "rows": 36}, "passed": true, "rows": [], "severity": "warn", "status": "proved"}, "smoke": {"message": "the query finds 12 rows", "metadata": {"from": "2026-01-05T02:00:00+00:00", "rows_found": 12, "to": "2026-01-05T03:00:00+00:00"}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}, "spot": {"message": "10 rows of BigQuery are in Harper and 7 rows of Harper in BigQuery, each the same in every column", "metadata": {"crowded_times_left_out": 0, "read_at_commit": true, "rows_from_bigquery": 10, "rows_from_harper": 7, "rows_kept": 0, "rows_moved_meanwhile": 0, "rows_quarantined": 0, "sample_size": 10, "seed": 2193855971}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}}}');
INSERT INTO "audit" VALUES(29,1768250435854000,'register',3,'Ports_filled000000','ok','{"source": "local.older_release.ports_filled000000"}');
INSERT INTO "audit" VALUES(30,1768250435902000,'lease',3,'slice 0','taken','{"epoch": 1, "host": "older-host", "owner": "dc0813fa-90ba-4904-b82a-1b8777d9dffa", "taken_from": null}');
INSERT INTO "audit" VALUES(31,1768250435902000,'lease',3,'slice 1','taken','{"epoch": 1, "host": "older-host", "owner": "dc0813fa-90ba-4904-b82a-1b8777d9dffa", "taken_from": null}');
INSERT INTO "audit" VALUES(32,1768250436176000,'schema',3,'version 1','recorded','{"by": "dc0813fa-90ba-4904-b82a-1b8777d9dffa", "cause": "first sync"}');
INSERT INTO "audit" VALUES(33,1768250436309000,'plan',3,'batches 1 to 4','planned','{"owner": "dc0813fa-90ba-4904-b82a-1b8777d9dffa", "run_id": "dc0813fa-90ba-4904-b82a-1b8777d9dffa", "slices": [0, 1], "t": "2026-01-12T20:40:35.941071+00:00"}');
INSERT INTO "audit" VALUES(34,1768250447450000,'commit',3,'2026-01-05T00:00|s00','ok','{"batch": 1, "mode": "copy", "quarantined": 0, "read": 3}');
INSERT INTO "audit" VALUES(35,1768250447450000,'commit',3,'2026-01-05T00:00|s01','ok','{"batch": 2, "mode": "copy", "quarantined": 0, "read": 1}');
INSERT INTO "audit" VALUES(36,1768250447450000,'commit',3,'2026-01-05T01:00|s00','ok','{"batch": 3, "mode": "copy", "quarantined": 0, "read": 1}');
INSERT INTO "audit" VALUES(37,1768250447450000,'commit',3,'2026-01-05T01:00|s01','ok','{"batch": 4, "mode": "copy", "quarantined": 0, "read": 3}');
INSERT INTO "audit" VALUES(38,1768250447492000,'lease',3,'slice 0','released','{"epoch": 1, "owner": "dc0813fa-90ba-4904-b82a-1b8777d9dffa"}');
INSERT INTO "audit" VALUES(39,1768250447492000,'lease',3,'slice 1','released','{"epoch": 1, "owner": "dc0813fa-90ba-4904-b82a-1b8777d9dffa"}');
INSERT INTO "audit" VALUES(40,1768250454816000,'validation',3,'ports_filled000000','issues_detected','{"checks": {"progress": {"message": "4 rows wait, the oldest of 2026-01-05 02:00:00 UTC; it has been due for 317 days, 18:39:48", "metadata": {"diagnosis": [], "due_until": "2026-01-12T20:39:48.043614+00:00", "lag_seconds": 27456048.043614, "newest_commit": "2026-01-12T20:40:47.450000+00:00", "now": "2026-01-12T20:40:48.043614+00:00", "overdue_seconds": 27455988.043614, "rows_before_start": 0, "rows_in_future": 0, "rows_waiting": 4, "rows_without_time": 0, "slices_behind": [], "synced_until": "2026-01-05T02:00:00+00:00", "waiting_since": "2026-01-05T02:00:00+00:00"}, "passed": false, "rows": [], "severity": "error", "status": "severely_lagging"}, "proof": {"message": "4 cells: 4 proved by stored hash", "metadata": {"cells": {"proved": 4}, "changed": 0, "form": "quick", "missing": 0, "phantom": 0, "rows": 8}, "passed": true, "rows": [], "severity": "warn", "status": "proved"}, "smoke": {"message": "the query finds 4 rows", "metadata": {"from": "2026-01-05T01:00:00+00:00", "rows_found": 4, "to": "2026-01-05T02:00:00+00:00"}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}, "spot": {"message": "8 rows of BigQuery are in Harper and 6 rows of Harper in BigQuery, each the same in every column", "metadata": {"crowded_times_left_out": 0, "read_at_commit": true, "rows_from_bigquery": 8, "rows_from_harper": 6, "rows_kept": 0, "rows_moved_meanwhile": 0, "rows_quarantined": 0, "sample_size": 10, "seed": 817378911}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}}}');
INSERT INTO "audit" VALUES(41,1768250491887000,'lease',3,'slice 0','taken','{"epoch": 2, "host": "older-host", "owner": "909ff289-344e-4632-8c7b-8d1b6565440e", "taken_from": null}');
INSERT INTO "audit" VALUES(42,1768250491887000,'lease',3,'slice 1','taken','{"epoch": 2, "host": "older-host", "owner": "909ff289-344e-4632-8c7b-8d1b6565440e", "taken_from": null}');
INSERT INTO "audit" VALUES(43,1768250491989000,'schema',3,'version 2','recorded','{"by": "909ff289-344e-4632-8c7b-8d1b6565440e", "cause": "a sync saw it"}');
INSERT INTO "audit" VALUES(44,1768250492230000,'plan',3,'batches 5 to 6','planned','{"owner": "909ff289-344e-4632-8c7b-8d1b6565440e", "run_id": "909ff289-344e-4632-8c7b-8d1b6565440e", "slices": [0, 1], "t": "2026-01-12T20:41:31.916554+00:00"}');
INSERT INTO "audit" VALUES(45,1768250504196000,'commit',3,'2026-01-05T02:00|s00','ok','{"batch": 5, "mode": "copy", "quarantined": 0, "read": 2}');
INSERT INTO "audit" VALUES(46,1768250504196000,'commit',3,'2026-01-05T02:00|s01','ok','{"batch": 6, "mode": "copy", "quarantined": 0, "read": 2}');
INSERT INTO "audit" VALUES(47,1768250504219000,'lease',3,'slice 0','released','{"epoch": 2, "owner": "909ff289-344e-4632-8c7b-8d1b6565440e"}');
INSERT INTO "audit" VALUES(48,1768250504219000,'lease',3,'slice 1','released','{"epoch": 2, "owner": "909ff289-344e-4632-8c7b-8d1b6565440e"}');
INSERT INTO "audit" VALUES(49,1768250513899000,'validation',3,'ports_filled000000','healthy','{"checks": {"progress": {"message": "nothing is due: BigQuery has no row that Harper should have and was not given", "metadata": {"diagnosis": [], "due_until": "2026-01-12T20:40:44.620101+00:00", "lag_seconds": 27452504.620101, "newest_commit": "2026-01-12T20:41:44.196000+00:00", "now": "2026-01-12T20:41:44.620101+00:00", "overdue_seconds": 0.0, "rows_before_start": 0, "rows_in_future": 0, "rows_waiting": 0, "rows_without_time": 0, "slices_behind": [], "synced_until": "2026-01-05T03:00:00+00:00", "waiting_since": null}, "passed": true, "rows": [], "severity": "warn", "status": "healthy"}, "proof": {"message": "2 cells: 2 proved by stored hash", "metadata": {"cells": {"proved": 2}, "changed": 0, "form": "quick", "missing": 0, "phantom": 0, "rows": 4}, "passed": true, "rows": [], "severity": "warn", "status": "proved"}, "smoke": {"message": "the query finds 4 rows", "metadata": {"from": "2026-01-05T02:00:00+00:00", "rows_found": 4, "to": "2026-01-05T03:00:00+00:00"}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}, "spot": {"message": "4 rows of BigQuery are in Harper and 4 rows of Harper in BigQuery, each the same in every column", "metadata": {"crowded_times_left_out": 0, "read_at_commit": true, "rows_from_bigquery": 4, "rows_from_harper": 4, "rows_kept": 0, "rows_moved_meanwhile": 0, "rows_quarantined": 0, "sample_size": 10, "seed": 3418019351}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}}}');
INSERT INTO "audit" VALUES(50,1768250526745000,'schema',3,'version 2','rebased','{"cells": 4}');
INSERT INTO "audit" VALUES(51,1768250588951000,'lease',1,'slice 0','taken','{"epoch": 2, "host": "older-host", "owner": "3fcb027f-de01-425c-8331-93905c16abc7", "taken_from": null}');
INSERT INTO "audit" VALUES(52,1768250588951000,'lease',1,'slice 1','taken','{"epoch": 2, "host": "older-host", "owner": "3fcb027f-de01-425c-8331-93905c16abc7", "taken_from": null}');
INSERT INTO "audit" VALUES(53,1768250590254000,'plan',1,'batches 7 to 8','planned','{"owner": "3fcb027f-de01-425c-8331-93905c16abc7", "run_id": "3fcb027f-de01-425c-8331-93905c16abc7", "slices": [0, 1], "t": "2026-01-12T20:43:09.078833+00:00"}');
INSERT INTO "audit" VALUES(54,1768250655639000,'mark',1,'1 cells','marked','{"cells": ["2026-01-05T00:00|s01"], "owner": "3fcb027f-de01-425c-8331-93905c16abc7", "t": "2026-01-12T20:43:09.078833+00:00"}');
INSERT INTO "audit" VALUES(55,1768250659327000,'commit',1,'2026-01-05T02:00|s00','ok','{"batch": 7, "mode": "reconcile", "quarantined": 0, "read": 5}');
INSERT INTO "audit" VALUES(56,1768250659327000,'commit',1,'2026-01-05T02:00|s01','ok','{"batch": 8, "mode": "reconcile", "quarantined": 0, "read": 6}');
INSERT INTO "audit" VALUES(57,1768250659421000,'lease',1,'slice 0','released','{"epoch": 2, "owner": "3fcb027f-de01-425c-8331-93905c16abc7"}');
INSERT INTO "audit" VALUES(58,1768250659421000,'lease',1,'slice 1','released','{"epoch": 2, "owner": "3fcb027f-de01-425c-8331-93905c16abc7"}');
INSERT INTO "audit" VALUES(59,1768250671376000,'validation',1,'ships_filled000000','healthy','{"checks": {"progress": {"message": "nothing is due: BigQuery has no row that Harper should have and was not given", "metadata": {"diagnosis": [], "due_until": "2026-01-12T20:43:20.113943+00:00", "lag_seconds": 27452660.113943, "newest_commit": "2026-01-12T20:44:19.327000+00:00", "now": "2026-01-12T20:44:20.113943+00:00", "overdue_seconds": 0.0, "rows_before_start": 0, "rows_in_future": 0, "rows_waiting": 0, "rows_without_time": 0, "slices_behind": [], "synced_until": "2026-01-05T03:00:00+00:00", "waiting_since": null}, "passed": true, "rows": [], "severity": "warn", "status": "healthy"}, "proof": {"message": "2 cells: 2 proved by stored hash", "metadata": {"cells": {"proved": 2}, "changed": 0, "form": "quick", "missing": 0, "phantom": 0, "rows": 11}, "passed": true, "rows": [], "severity": "warn", "status": "proved"}, "smoke": {"message": "the query finds 11 rows", "metadata": {"from": "2026-01-05T02:00:00+00:00", "rows_found": 11, "to": "2026-01-05T03:00:00+00:00"}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}, "spot": {"message": "10 rows of BigQuery are in Harper and 8 rows of Harper in BigQuery, each the same in every column", "metadata": {"crowded_times_left_out": 0, "read_at_commit": true, "rows_from_bigquery": 10, "rows_from_harper": 8, "rows_kept": 0, "rows_moved_meanwhile": 0, "rows_quarantined": 0, "sample_size": 10, "seed": 2665787008}, "passed": true, "rows": [], "severity": "error", "status": "healthy"}}}');
INSERT INTO "audit" VALUES(60,1768250775898000,'validation',2,'reports_filled000000','healthy','{"checks": {"proof": {"message": "6 cells: 6 proved", "metadata": {"cells": {"proved": 6}, "changed": 0, "form": "deep", "missing": 0, "phantom": 0, "rows": 36}, "passed": true, "rows": [], "severity": "warn", "status": "proved"}}}');
INSERT INTO "audit" VALUES(61,1768250776037000,'presence',2,'reports_filled000000','proved','{"held": 36, "in_another_form": 0, "in_cells": 36, "in_no_cell": 0, "kept": 0, "lost": 0, "message": "Harper holds 36 rows of Reports_filled000000 in the order of ids; 36 are in synced cells, and each is found by its window", "not_judged": 0, "outside": 0, "without_time": 0}');
INSERT INTO "audit" VALUES(62,1768250776051000,'validation',2,'reports_filled000000','healthy','{"checks": {"presence": {"message": "Harper holds 36 rows of Reports_filled000000 in the order of ids; 36 are in synced cells, and each is found by its window", "metadata": {"held": 36, "in_another_form": 0, "in_cells": 36, "in_no_cell": 0, "kept": 0, "lost": 0, "not_judged": 0, "outside": 0, "without_time": 0}, "passed": true, "rows": [], "severity": "warn", "status": "proved"}}}');
INSERT INTO "audit" VALUES(63,1768250809561000,'claim',NULL,'schema_check','taken','{"epoch": 1, "owner": "older-host-2639", "taken_from": null}');
INSERT INTO "audit" VALUES(64,1768250809759000,'claim',NULL,'schema_check','released','{"epoch": 1, "owner": "older-host-2639"}');
CREATE TABLE "batches" (
	table_id INTEGER NOT NULL, 
	seq BIGINT NOT NULL, 
	slice INTEGER NOT NULL, 
	window_start BIGINT NOT NULL, 
	snapshot BIGINT NOT NULL, 
	schema_version INTEGER NOT NULL, 
	owner TEXT NOT NULL, 
	epoch BIGINT NOT NULL, 
	run_id TEXT NOT NULL, 
	mode TEXT NOT NULL, 
	state TEXT NOT NULL, 
	fingerprint TEXT NOT NULL, 
	planned_at BIGINT NOT NULL, 
	ended_at BIGINT, 
	rows_read BIGINT, 
	rows_written BIGINT, 
	rows_unchanged BIGINT, 
	rows_quarantined BIGINT, 
	rows_deleted BIGINT, 
	bytes BIGINT, 
	seconds FLOAT, 
	digest TEXT, 
	error TEXT, 
	upto BIGINT NOT NULL, 
	since BIGINT, 
	rows_moved BIGINT, 
	rows_flagged BIGINT, 
	rows_kept BIGINT, rows_held BIGINT, deletes_allowed BOOLEAN, deletes_intended BIGINT, refused_until BIGINT, 
	CONSTRAINT batches_pk PRIMARY KEY (table_id, seq), 
	CONSTRAINT batches_table_id_schema_version_fk FOREIGN KEY(table_id, schema_version) REFERENCES schema_versions (table_id, version), 
	CONSTRAINT batches_conservation_ck CHECK (state <> 'applied' OR rows_read = rows_written + rows_unchanged + rows_quarantined), 
	CONSTRAINT batches_table_id_fk FOREIGN KEY(table_id) REFERENCES logical_tables (id)
);
INSERT INTO "batches" VALUES(1,1,0,1767571200000000,1768250279853956,1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b',1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b','copy','applied','10:10:100dec9777aa41b1:5c3683bbd:5b6f220fd',1768250281483000,1768250305120000,0,0,0,0,0,0,2.56019475820003208346e+01,'0-0000000000000000-0000000000000000',NULL,1767574800000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(1,2,1,1767571200000000,1768250279853956,1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b',1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b','copy','applied','10:10:100dec9777aa41b1:5c3683bbd:5b6f220fd',1768250281483000,1768250305120000,10,9,0,1,0,3942,2.56019475820003208346e+01,'10-3b34a0d3ac4f9ec9-8be8ed8f152ac703',NULL,1767574800000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(1,3,0,1767574800000000,1768250279853956,1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b',1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b','copy','applied','10:10:7ba483fb83e1a572:4b82901e0:5a9222973',1768250281483000,1768250305120000,5,5,0,0,0,2190,2.56019475820003208346e+01,'5-3d3ce711f30cb731-2fdd0419e13db7cf',NULL,1767578400000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(1,4,1,1767574800000000,1768250279853956,1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b',1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b','copy','applied','10:10:7ba483fb83e1a572:4b82901e0:5a9222973',1768250281483000,1768250305120000,5,5,0,0,0,2190,2.56019475820003208346e+01,'5-6e7a796c52eb916a-6442e82b12ecdb20',NULL,1767578400000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(1,5,0,1767578400000000,1768250279853956,1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b',1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b','copy','applied','10:10:7b0296138a164e78:6861de262:6c41af62d',1768250281483000,1768250305120000,5,5,0,0,0,2190,2.56019475820003208346e+01,'5-86d4984262ca1827-89f1045ca299580d',NULL,1767582000000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(1,6,1,1767578400000000,1768250279853956,1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b',1,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b','copy','applied','10:10:7b0296138a164e78:6861de262:6c41af62d',1768250281483000,1768250305120000,5,5,0,0,0,2190,2.56019475820003208346e+01,'5-5a79f6fa6dcf60b5-c4bbf78ff5d4b7ab',NULL,1767582000000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(2,1,0,1767571200000000,1768250375711774,1,'dad33f86-69b6-46b4-a54c-523a6f052ce7',1,'dad33f86-69b6-46b4-a54c-523a6f052ce7','number','applied','12:6:7d75cffac9f2c059:68028ac6d:57f8c186a',1768250376419000,1768250396947000,12,12,0,0,0,3248,2.13843994640001255902e+01,'12-d7274cc1a3659d49-7b18cc3d0f3c236f',NULL,1767574800000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(2,2,1,1767571200000000,1768250375711774,1,'dad33f86-69b6-46b4-a54c-523a6f052ce7',1,'dad33f86-69b6-46b4-a54c-523a6f052ce7','number','applied','12:6:7d75cffac9f2c059:68028ac6d:57f8c186a',1768250376419000,1768250396947000,0,0,0,0,0,0,2.13843994640001255902e+01,'0-0000000000000000-0000000000000000',NULL,1767574800000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(2,3,0,1767574800000000,1768250375711774,1,'dad33f86-69b6-46b4-a54c-523a6f052ce7',1,'dad33f86-69b6-46b4-a54c-523a6f052ce7','number','applied','12:6:0ed66b4f136f542f:3a02eaedb:797ea2bcf',1768250376419000,1768250396947000,8,8,0,0,0,2165,2.13843994640001255902e+01,'8-d668d3c90d798cb8-06a479de5a3ccee6',NULL,1767578400000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(2,4,1,1767574800000000,1768250375711774,1,'dad33f86-69b6-46b4-a54c-523a6f052ce7',1,'dad33f86-69b6-46b4-a54c-523a6f052ce7','number','applied','12:6:0ed66b4f136f542f:3a02eaedb:797ea2bcf',1768250376419000,1768250396947000,4,4,0,0,0,1082,2.13843994640001255902e+01,'4-1f6d87853d378684-4a103c3a1042d5dc',NULL,1767578400000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(2,5,0,1767578400000000,1768250375711774,1,'dad33f86-69b6-46b4-a54c-523a6f052ce7',1,'dad33f86-69b6-46b4-a54c-523a6f052ce7','number','applied','12:6:5679df3553f32dde:7abf68e1c:378c23c31',1768250376419000,1768250396947000,5,5,0,0,0,1353,2.13843994640001255902e+01,'5-e4337ede27214212-d9daf509e6df2b9a',NULL,1767582000000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(2,6,1,1767578400000000,1768250375711774,1,'dad33f86-69b6-46b4-a54c-523a6f052ce7',1,'dad33f86-69b6-46b4-a54c-523a6f052ce7','number','applied','12:6:5679df3553f32dde:7abf68e1c:378c23c31',1768250376419000,1768250396947000,7,7,0,0,0,1895,2.13843994640001255902e+01,'7-5a93e14add8e50b7-26028c4741982657',NULL,1767582000000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(3,1,0,1767571200000000,1768250435941071,1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa',1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa','copy','applied','4:4:b7446aa73c10ad79:dbe24c47:29bbfee5d',1768250436309000,1768250447450000,3,3,0,0,0,667,1.15962400680000428106e+01,'3-73639e8d0da4b14a-1884a702e2afd1a4',NULL,1767574800000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(3,2,1,1767571200000000,1768250435941071,1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa',1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa','copy','applied','4:4:b7446aa73c10ad79:dbe24c47:29bbfee5d',1768250436309000,1768250447450000,1,1,0,0,0,222,1.15962400680000428106e+01,'1-bffbf6818d4528a6-bffbf6818d4528a6',NULL,1767574800000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(3,3,0,1767574800000000,1768250435941071,1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa',1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa','copy','applied','4:4:5827957cdb174a36:2e2e935cc:2a7dced4e',1768250436309000,1768250447450000,1,1,0,0,0,222,1.15962400680000428106e+01,'1-d81444426e597989-d81444426e597989',NULL,1767578400000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(3,4,1,1767574800000000,1768250435941071,1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa',1,'dc0813fa-90ba-4904-b82a-1b8777d9dffa','copy','applied','4:4:5827957cdb174a36:2e2e935cc:2a7dced4e',1768250436309000,1768250447450000,3,3,0,0,0,667,1.15962400680000428106e+01,'3-2ed9d6d76e66d7a5-d0a729e801990991',NULL,1767578400000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(3,5,0,1767578400000000,1768250491916554,2,'909ff289-344e-4632-8c7b-8d1b6565440e',2,'909ff289-344e-4632-8c7b-8d1b6565440e','copy','applied','4:4:06f592f7144cb675:1742a4991:20ab4020d',1768250492230000,1768250504196000,2,2,0,0,0,448,1.23493665420000979797e+01,'2-5e64e5a1b3c5ed7b-5d92d959a835e87b',NULL,1767582000000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(3,6,1,1767578400000000,1768250491916554,2,'909ff289-344e-4632-8c7b-8d1b6565440e',2,'909ff289-344e-4632-8c7b-8d1b6565440e','copy','applied','4:4:06f592f7144cb675:1742a4991:20ab4020d',1768250492230000,1768250504196000,2,2,0,0,0,448,1.23493665420000979797e+01,'2-776e26baae7bce19-6769a035017b8d95',NULL,1767582000000000,NULL,0,0,0,0,0,NULL,NULL);
INSERT INTO "batches" VALUES(1,7,0,1767578400000000,1768250589078833,1,'3fcb027f-de01-425c-8331-93905c16abc7',2,'3fcb027f-de01-425c-8331-93905c16abc7','reconcile','applied','11:11:c8acd7fceaabad69:6e6dbc573:777c9381c',1768250590254000,1768250659327000,5,0,5,0,0,0,7.04978606149998086047e+01,'5-86d4984262ca1827-89f1045ca299580d',NULL,1767582000000000,NULL,0,0,0,5,0,NULL,NULL);
INSERT INTO "batches" VALUES(1,8,1,1767578400000000,1768250589078833,1,'3fcb027f-de01-425c-8331-93905c16abc7',2,'3fcb027f-de01-425c-8331-93905c16abc7','reconcile','applied','11:11:c8acd7fceaabad69:6e6dbc573:777c9381c',1768250590254000,1768250659327000,6,1,5,0,0,381,7.04978606149998086047e+01,'6-5759f04255864532-38640ec8126253d6',NULL,1767582000000000,NULL,0,0,0,5,0,NULL,NULL);
CREATE TABLE cells (
	table_id INTEGER NOT NULL, 
	slice INTEGER NOT NULL, 
	window_start BIGINT NOT NULL, 
	window_end BIGINT NOT NULL, 
	state TEXT NOT NULL, 
	batch BIGINT, 
	snapshot BIGINT, 
	schema_version INTEGER, 
	rows BIGINT, 
	digest TEXT, 
	fingerprint TEXT, 
	committed_at BIGINT, upto BIGINT, fingerprint_version INTEGER, 
	CONSTRAINT cells_pk PRIMARY KEY (table_id, slice, window_start), 
	CONSTRAINT cells_table_id_fk FOREIGN KEY(table_id) REFERENCES logical_tables (id)
);
INSERT INTO "cells" VALUES(1,0,1767571200000000,1767574800000000,'synced',1,1768250279853956,1,0,'0-0000000000000000-0000000000000000','10:10:100dec9777aa41b1:5c3683bbd:5b6f220fd',1768250305120000,1767574800000000,NULL);
INSERT INTO "cells" VALUES(1,1,1767571200000000,1767574800000000,'synced',2,1768250279853956,1,9,'10-3b34a0d3ac4f9ec9-8be8ed8f152ac703','10:10:100dec9777aa41b1:5c3683bbd:5b6f220fd',1768250305120000,1767574800000000,NULL);
INSERT INTO "cells" VALUES(1,0,1767574800000000,1767578400000000,'synced',3,1768250279853956,1,5,'5-3d3ce711f30cb731-2fdd0419e13db7cf','10:10:7ba483fb83e1a572:4b82901e0:5a9222973',1768250305120000,1767578400000000,NULL);
INSERT INTO "cells" VALUES(1,1,1767574800000000,1767578400000000,'synced',4,1768250279853956,1,5,'5-6e7a796c52eb916a-6442e82b12ecdb20','10:10:7ba483fb83e1a572:4b82901e0:5a9222973',1768250305120000,1767578400000000,NULL);
INSERT INTO "cells" VALUES(1,0,1767578400000000,1767582000000000,'synced',7,1768250589078833,1,5,'5-86d4984262ca1827-89f1045ca299580d','11:11:c8acd7fceaabad69:6e6dbc573:777c9381c',1768250659327000,1767582000000000,NULL);
INSERT INTO "cells" VALUES(1,1,1767578400000000,1767582000000000,'synced',8,1768250589078833,1,6,'6-5759f04255864532-38640ec8126253d6','11:11:c8acd7fceaabad69:6e6dbc573:777c9381c',1768250659327000,1767582000000000,NULL);
INSERT INTO "cells" VALUES(2,0,1767571200000000,1767574800000000,'synced',1,1768250375711774,1,12,'12-d7274cc1a3659d49-7b18cc3d0f3c236f','12:6:7d75cffac9f2c059:68028ac6d:57f8c186a',1768250396947000,1767574800000000,NULL);
INSERT INTO "cells" VALUES(2,1,1767571200000000,1767574800000000,'synced',2,1768250375711774,1,0,'0-0000000000000000-0000000000000000','12:6:7d75cffac9f2c059:68028ac6d:57f8c186a',1768250396947000,1767574800000000,NULL);
INSERT INTO "cells" VALUES(2,0,1767574800000000,1767578400000000,'synced',3,1768250375711774,1,8,'8-d668d3c90d798cb8-06a479de5a3ccee6','12:6:0ed66b4f136f542f:3a02eaedb:797ea2bcf',1768250396947000,1767578400000000,NULL);
INSERT INTO "cells" VALUES(2,1,1767574800000000,1767578400000000,'synced',4,1768250375711774,1,4,'4-1f6d87853d378684-4a103c3a1042d5dc','12:6:0ed66b4f136f542f:3a02eaedb:797ea2bcf',1768250396947000,1767578400000000,NULL);
INSERT INTO "cells" VALUES(2,0,1767578400000000,1767582000000000,'synced',5,1768250375711774,1,5,'5-e4337ede27214212-d9daf509e6df2b9a','12:6:5679df3553f32dde:7abf68e1c:378c23c31',1768250396947000,1767582000000000,NULL);
INSERT INTO "cells" VALUES(2,1,1767578400000000,1767582000000000,'synced',6,1768250375711774,1,7,'7-5a93e14add8e50b7-26028c4741982657','12:6:5679df3553f32dde:7abf68e1c:378c23c31',1768250396947000,1767582000000000,NULL);
INSERT INTO "cells" VALUES(3,0,1767571200000000,1767574800000000,'synced',1,1768250435941071,1,3,'3-73639e8d0da4b14a-1884a702e2afd1a4','4:4:d01bae79838f60e1:17e11219d:12fc7d607',1768250447450000,1767574800000000,2);
INSERT INTO "cells" VALUES(3,1,1767571200000000,1767574800000000,'synced',2,1768250435941071,1,1,'1-bffbf6818d4528a6-bffbf6818d4528a6','4:4:d01bae79838f60e1:17e11219d:12fc7d607',1768250447450000,1767574800000000,2);
INSERT INTO "cells" VALUES(3,0,1767574800000000,1767578400000000,'synced',3,1768250435941071,1,1,'1-d81444426e597989-d81444426e597989','4:4:7d99bcf6451d22e4:1ee0b5f94:1137ced00',1768250447450000,1767578400000000,2);
INSERT INTO "cells" VALUES(3,1,1767574800000000,1767578400000000,'synced',4,1768250435941071,1,3,'3-2ed9d6d76e66d7a5-d0a729e801990991','4:4:7d99bcf6451d22e4:1ee0b5f94:1137ced00',1768250447450000,1767578400000000,2);
INSERT INTO "cells" VALUES(3,0,1767578400000000,1767582000000000,'synced',5,1768250491916554,2,2,'2-5e64e5a1b3c5ed7b-5d92d959a835e87b','4:4:06f592f7144cb675:1742a4991:20ab4020d',1768250504196000,1767582000000000,NULL);
INSERT INTO "cells" VALUES(3,1,1767578400000000,1767582000000000,'synced',6,1768250491916554,2,2,'2-776e26baae7bce19-6769a035017b8d95','4:4:06f592f7144cb675:1742a4991:20ab4020d',1768250504196000,1767582000000000,NULL);
CREATE TABLE claims (
	name TEXT NOT NULL, 
	owner TEXT, 
	epoch BIGINT NOT NULL, 
	acquired_at BIGINT, 
	expires_at BIGINT, 
	note TEXT NOT NULL, 
	CONSTRAINT claims_pk PRIMARY KEY (name)
);
INSERT INTO "claims" VALUES('schema_check',NULL,1,NULL,NULL,'{"at":"2026-01-12T20:46:49.583000Z","next_look":"2026-01-12T20:51:49.583000Z","pace":{"wait":"PT5M","stable":1},"tables":["ships_filled000000","reports_filled000000","ports_filled000000"],"problems":{}}');
CREATE TABLE leases (
	table_id INTEGER NOT NULL, 
	slice INTEGER NOT NULL, 
	owner TEXT, 
	epoch BIGINT NOT NULL, 
	acquired_at BIGINT, 
	expires_at BIGINT, 
	snapshot BIGINT, 
	schema_version INTEGER, mirrored_epoch BIGINT, mirrored_batch BIGINT, 
	CONSTRAINT leases_pk PRIMARY KEY (table_id, slice), 
	CONSTRAINT leases_table_id_fk FOREIGN KEY(table_id) REFERENCES logical_tables (id)
);
INSERT INTO "leases" VALUES(1,0,NULL,2,NULL,NULL,1768250589078833,1,2,8);
INSERT INTO "leases" VALUES(1,1,NULL,2,NULL,NULL,1768250589078833,1,2,8);
INSERT INTO "leases" VALUES(2,0,NULL,1,NULL,NULL,1768250375711774,1,1,6);
INSERT INTO "leases" VALUES(2,1,NULL,1,NULL,NULL,1768250375711774,1,1,6);
INSERT INTO "leases" VALUES(3,0,NULL,2,NULL,NULL,1768250491916554,2,2,6);
INSERT INTO "leases" VALUES(3,1,NULL,2,NULL,NULL,1768250491916554,2,2,6);
CREATE TABLE ledger_identity (
	id INTEGER NOT NULL, 
	uuid TEXT NOT NULL, 
	CONSTRAINT ledger_identity_pk PRIMARY KEY (id), 
	CONSTRAINT ledger_identity_one_ck CHECK (id = 1)
);
INSERT INTO "ledger_identity" VALUES(1,'da47a1cf-03e0-4133-a602-6cc7c4797031');
CREATE TABLE logical_tables (
	id INTEGER NOT NULL, 
	name TEXT NOT NULL, 
	source TEXT NOT NULL, 
	target TEXT NOT NULL, 
	timestamp_column TEXT NOT NULL, 
	key_columns TEXT NOT NULL, 
	window_us BIGINT NOT NULL, 
	slices INTEGER NOT NULL, 
	last_batch BIGINT NOT NULL, 
	registered_at BIGINT NOT NULL, 
	CONSTRAINT logical_tables_pk PRIMARY KEY (id), 
	CONSTRAINT logical_tables_name_uq UNIQUE (name), 
	CONSTRAINT logical_tables_target_uq UNIQUE (target)
);
INSERT INTO "logical_tables" VALUES(1,'ships_filled000000','local.older_release.ships_filled000000','Ships_filled000000','ts','["number"]',3600000000,2,8,1768250279517000);
INSERT INTO "logical_tables" VALUES(2,'reports_filled000000','local.older_release.reports_filled000000','Reports_filled000000','ts','[]',3600000000,2,6,1768250375562000);
INSERT INTO "logical_tables" VALUES(3,'ports_filled000000','local.older_release.ports_filled000000','Ports_filled000000','ts','["code"]',3600000000,2,6,1768250435854000);
CREATE TABLE marks (
	table_id INTEGER NOT NULL, 
	slice INTEGER NOT NULL, 
	window_start BIGINT NOT NULL, 
	snapshot BIGINT NOT NULL, 
	row_time BIGINT NOT NULL, 
	reason TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT marks_pk PRIMARY KEY (table_id, slice, window_start, snapshot), 
	CONSTRAINT marks_table_id_slice_window_start_fk FOREIGN KEY(table_id, slice, window_start) REFERENCES cells (table_id, slice, window_start)
);
INSERT INTO "marks" VALUES(1,1,1767571200000000,1768250589078833,1767573000000000,'a row moved away',1768250655639000);
CREATE TABLE proofs (
	table_id INTEGER NOT NULL, 
	slice INTEGER NOT NULL, 
	window_start BIGINT NOT NULL, 
	batch BIGINT NOT NULL, 
	status TEXT NOT NULL, 
	deep BOOLEAN NOT NULL, 
	source_changed BOOLEAN NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT proofs_pk PRIMARY KEY (table_id, slice, window_start), 
	CONSTRAINT proofs_table_id_fk FOREIGN KEY(table_id) REFERENCES logical_tables (id)
);
INSERT INTO "proofs" VALUES(1,0,1767571200000000,1,'proved',0,0,1768250320743000);
INSERT INTO "proofs" VALUES(1,1,1767571200000000,2,'proved',0,0,1768250320743000);
INSERT INTO "proofs" VALUES(1,0,1767574800000000,3,'proved',0,0,1768250320743000);
INSERT INTO "proofs" VALUES(1,1,1767574800000000,4,'proved',0,0,1768250320743000);
INSERT INTO "proofs" VALUES(3,0,1767571200000000,1,'proved',0,0,1768250454806000);
INSERT INTO "proofs" VALUES(3,1,1767571200000000,2,'proved',0,0,1768250454806000);
INSERT INTO "proofs" VALUES(3,0,1767574800000000,3,'proved',0,0,1768250454806000);
INSERT INTO "proofs" VALUES(3,1,1767574800000000,4,'proved',0,0,1768250454806000);
INSERT INTO "proofs" VALUES(3,0,1767578400000000,5,'proved',0,0,1768250513892000);
INSERT INTO "proofs" VALUES(3,1,1767578400000000,6,'proved',0,0,1768250513892000);
INSERT INTO "proofs" VALUES(1,0,1767578400000000,7,'proved',0,0,1768250671351000);
INSERT INTO "proofs" VALUES(1,1,1767578400000000,8,'proved',0,0,1768250671351000);
INSERT INTO "proofs" VALUES(2,0,1767571200000000,1,'proved',1,0,1768250775849000);
INSERT INTO "proofs" VALUES(2,1,1767571200000000,2,'proved',1,0,1768250775849000);
INSERT INTO "proofs" VALUES(2,0,1767574800000000,3,'proved',1,0,1768250775849000);
INSERT INTO "proofs" VALUES(2,1,1767574800000000,4,'proved',1,0,1768250775849000);
INSERT INTO "proofs" VALUES(2,0,1767578400000000,5,'proved',1,0,1768250775849000);
INSERT INTO "proofs" VALUES(2,1,1767578400000000,6,'proved',1,0,1768250775849000);
CREATE TABLE quarantine (
	table_id INTEGER NOT NULL, 
	slice INTEGER NOT NULL, 
	window_start BIGINT NOT NULL, 
	number INTEGER NOT NULL, 
	batch BIGINT NOT NULL, 
	row_id TEXT, 
	reason TEXT NOT NULL, 
	payload TEXT NOT NULL, 
	at BIGINT NOT NULL, 
	CONSTRAINT quarantine_pk PRIMARY KEY (table_id, slice, window_start, number), 
	CONSTRAINT quarantine_table_id_slice_window_start_fk FOREIGN KEY(table_id, slice, window_start) REFERENCES cells (table_id, slice, window_start)
);
INSERT INTO "quarantine" VALUES(1,1,1767571200000000,0,2,'7','speed: NaN or infinite, which JSON cannot hold','{"number": 7, "ts": "2026-01-05 00:42:00+00:00", "name": "Büsum 7", "speed": NaN, "draught": "7.000", "cargo": "1234567897.5000000000", "moored": false, "built": "2000-01-06", "docked": "2026-01-05 06:07:08.000009", "watch": "23:59:59.000001", "flag": "b''a7''", "notes": "{\u005c"b\u005c":[1,2.5,null],\u005c"a\u005c":\u005c"x\u005c"}", "home": {"lat": 1.0, "lon": -1.0, "names": ["north", "east"]}, "crew": [7, 8]}',1768250305120000);
CREATE TABLE schema_versions (
	table_id INTEGER NOT NULL, 
	version INTEGER NOT NULL, 
	body TEXT NOT NULL, 
	recorded_at BIGINT NOT NULL, recorded_by TEXT DEFAULT '' NOT NULL, cause TEXT DEFAULT '' NOT NULL, changes TEXT, source_fingerprint TEXT, 
	CONSTRAINT schema_versions_pk PRIMARY KEY (table_id, version), 
	CONSTRAINT schema_versions_table_id_fk FOREIGN KEY(table_id) REFERENCES logical_tables (id)
);
INSERT INTO "schema_versions" VALUES(1,1,'{"columns": [{"description": "", "fields": [], "form": "number", "indexed": false, "kind": "INT64", "max_length": null, "name": "number", "repeated": false, "required": false, "source": "number", "spelling": "", "state": "live", "type": "Long", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": true, "kind": "TIMESTAMP", "max_length": null, "name": "ts", "repeated": false, "required": false, "source": "ts", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "name", "repeated": false, "required": false, "source": "name", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "FLOAT64", "max_length": null, "name": "speed", "repeated": false, "required": false, "source": "speed", "spelling": "", "state": "live", "type": "Float", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "NUMERIC", "max_length": null, "name": "draught", "repeated": false, "required": false, "source": "draught", "spelling": "", "state": "live", "type": "Float", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "NUMERIC", "max_length": null, "name": "cargo", "repeated": false, "required": false, "source": "cargo", "spelling": "", "state": "live", "type": "Float", "written": true}, {"description": "", "fields": [], "form": "boolean", "indexed": false, "kind": "BOOL", "max_length": null, "name": "moored", "repeated": false, "required": false, "source": "moored", "spelling": "", "state": "live", "type": "Boolean", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "DATE", "max_length": null, "name": "built", "repeated": false, "required": false, "source": "built", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "DATETIME", "max_length": null, "name": "docked", "repeated": false, "required": false, "source": "docked", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "TIME", "max_length": null, "name": "watch", "repeated": false, "required": false, "source": "watch", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "BYTES", "max_length": null, "name": "flag", "repeated": false, "required": false, "source": "flag", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "notes", "repeated": false, "required": false, "source": "notes", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [{"description": "", "fields": [], "form": "number", "indexed": false, "kind": "FLOAT64", "max_length": null, "name": "lat", "repeated": false, "required": false, "source": "lat", "spelling": "", "state": "live", "type": "Float", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "FLOAT64", "max_length": null, "name": "lon", "repeated": false, "required": false, "source": "lon", "spelling": "", "state": "live", "type": "Float", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "names", "repeated": true, "required": false, "source": "names", "spelling": "", "state": "live", "type": "Any", "written": true}], "form": "object", "indexed": false, "kind": "STRUCT", "max_length": null, "name": "home", "repeated": false, "required": false, "source": "home", "spelling": "", "state": "live", "type": "Any", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "INT64", "max_length": null, "name": "crew", "repeated": true, "required": false, "source": "crew", "spelling": "", "state": "live", "type": "Any", "written": true}], "id_columns": [], "key": ["number"], "layout": {"clustering": [], "partition_field": null, "primary_key": []}, "not_selected": [], "primary_key": "id"}',1768250280380000,'f4ec2a36-562d-461e-a962-e5b1c5dd9b1b','first sync','[]','99b260f00ca3d4eb9e3b7494eb92169d');
INSERT INTO "schema_versions" VALUES(2,1,'{"columns": [{"description": "", "fields": [], "form": "text", "indexed": true, "kind": "TIMESTAMP", "max_length": null, "name": "ts", "repeated": false, "required": false, "source": "ts", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "sender", "repeated": false, "required": false, "source": "sender", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "text", "repeated": false, "required": false, "source": "text", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "FLOAT64", "max_length": null, "name": "value", "repeated": false, "required": false, "source": "value", "spelling": "", "state": "live", "type": "Float", "written": true}, {"description": "", "fields": [{"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "port", "repeated": false, "required": false, "source": "port", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "INT64", "max_length": null, "name": "days", "repeated": false, "required": false, "source": "days", "spelling": "", "state": "live", "type": "Long", "written": true}], "form": "object", "indexed": false, "kind": "STRUCT", "max_length": null, "name": "stops", "repeated": true, "required": false, "source": "stops", "spelling": "", "state": "live", "type": "Any", "written": true}], "id_columns": ["ts", "sender", "text", "value", "stops", "stops.port", "stops.days"], "key": [], "layout": {"clustering": [], "partition_field": null, "primary_key": []}, "not_selected": [], "primary_key": "id"}',1768250376009000,'dad33f86-69b6-46b4-a54c-523a6f052ce7','first sync','[]','aa42ca5caa38c991a9f529cd2f2d2f22');
INSERT INTO "schema_versions" VALUES(3,1,'{"columns": [{"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "code", "repeated": false, "required": false, "source": "code", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": true, "kind": "TIMESTAMP", "max_length": null, "name": "ts", "repeated": false, "required": false, "source": "ts", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "depth", "repeated": false, "required": false, "source": "depth", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "INT64", "max_length": null, "name": "berths", "repeated": false, "required": false, "source": "berths", "spelling": "", "state": "live", "type": "Long", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "harbour", "repeated": false, "required": false, "source": "harbour", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [{"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "zip", "repeated": false, "required": false, "source": "zip", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "street", "repeated": false, "required": false, "source": "street", "spelling": "", "state": "live", "type": "String", "written": true}], "form": "object", "indexed": false, "kind": "STRUCT", "max_length": null, "name": "address", "repeated": false, "required": false, "source": "address", "spelling": "", "state": "live", "type": "Any", "written": true}], "id_columns": [], "key": ["code"], "layout": {"clustering": [], "partition_field": null, "primary_key": []}, "not_selected": [], "primary_key": "id"}',1768250436176000,'dc0813fa-90ba-4904-b82a-1b8777d9dffa','first sync','[]','9b892217dfb8040691ee75a7211b9f51');
INSERT INTO "schema_versions" VALUES(3,2,'{"columns": [{"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "code", "repeated": false, "required": false, "source": "code", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": true, "kind": "TIMESTAMP", "max_length": null, "name": "ts", "repeated": false, "required": false, "source": "ts", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "INT64", "max_length": null, "name": "depth_v2", "repeated": false, "required": false, "source": "depth", "spelling": "", "state": "live", "type": "Long", "written": true}, {"description": "", "fields": [], "form": "number", "indexed": false, "kind": "INT64", "max_length": null, "name": "berths", "repeated": false, "required": false, "source": "berths", "spelling": "", "state": "live", "type": "Long", "written": true}, {"description": "", "fields": [{"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "zip", "repeated": false, "required": false, "source": "zip", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "street", "repeated": false, "required": false, "source": "street", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "city", "repeated": false, "required": false, "source": "city", "spelling": "", "state": "waiting", "type": "String", "written": false}], "form": "object", "indexed": false, "kind": "STRUCT", "max_length": null, "name": "address", "repeated": false, "required": false, "source": "address", "spelling": "", "state": "live", "type": "Any", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "pilots", "repeated": false, "required": false, "source": "pilots", "spelling": "", "state": "live", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "depth", "repeated": false, "required": false, "source": "depth", "spelling": "", "state": "retired", "type": "String", "written": true}, {"description": "", "fields": [], "form": "text", "indexed": false, "kind": "STRING", "max_length": null, "name": "harbour", "repeated": false, "required": false, "source": "harbour", "spelling": "", "state": "retired", "type": "String", "written": true}], "id_columns": [], "key": ["code"], "layout": {"clustering": [], "partition_field": null, "primary_key": []}, "not_selected": [], "primary_key": "id"}',1768250491989000,'909ff289-344e-4632-8c7b-8d1b6565440e','a sync saw it','[{"action": "synced into depth_v2 from now on; depth keeps the values it has, and is listed by bqh schema cleanup ports_filled000000", "after": "INT64", "before": "STRING", "column": "depth", "kind": "retyped", "severity": "warn"}, {"action": "waits for: bqh schema apply ports_filled000000", "after": "STRING", "before": "", "column": "address.city", "kind": "added", "severity": "warn"}, {"action": "synced into pilots from now on", "after": "STRING", "before": "", "column": "pilots", "kind": "added", "severity": "info"}, {"action": "left out from now on; Harper keeps the values of harbour", "after": "", "before": "STRING", "column": "harbour", "kind": "removed", "severity": "warn"}]','e366788b389ffb396b8e61f1f3a96b9a');
CREATE TABLE starts (
	name TEXT NOT NULL, 
	start BIGINT NOT NULL, 
	CONSTRAINT starts_pk PRIMARY KEY (name)
);
INSERT INTO "starts" VALUES('reports_filled000000',1767571200000000);
CREATE INDEX audit_by_table ON audit (table_id, id);
CREATE INDEX cells_by_window ON cells (table_id, window_start);
CREATE UNIQUE INDEX batches_one_planned ON batches (table_id, slice, window_start) WHERE state = 'planned';
CREATE INDEX batches_by_cell ON batches (table_id, slice, window_start, seq);
CREATE INDEX batches_that_lost ON batches (table_id, ended_at) WHERE coalesce(rows_deleted + rows_flagged, deletes_intended) > 0;
COMMIT;
