"""Windows are synced again when their source changed; here it is decided which, when and how."""
