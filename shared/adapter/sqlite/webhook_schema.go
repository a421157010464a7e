package sqlite

// webhookSteps are the migrations of the webhooks; see DB.Migrate and storeSteps.
//
// The secrets have a separate column, because operators print the record. The deletion of a
// webhook deletes its deliveries.
var webhookSteps = []string{`
CREATE TABLE webhooks (
	n                INTEGER PRIMARY KEY,
	tenant           TEXT NOT NULL,
	id               TEXT NOT NULL,
	version          INTEGER NOT NULL,
	doc              BLOB NOT NULL,
	secrets          BLOB NOT NULL,
	progress_version INTEGER NOT NULL,
	progress         BLOB NOT NULL,
	wake_at          INTEGER NOT NULL -- a worker is to look at it
) STRICT;
CREATE UNIQUE INDEX webhooks_id ON webhooks (tenant, id);
CREATE INDEX webhooks_wake ON webhooks (wake_at);

CREATE TABLE deliveries (
	webhook    INTEGER NOT NULL REFERENCES webhooks (n) ON DELETE CASCADE,
	position   INTEGER NOT NULL,
	state      TEXT NOT NULL,
	expires_at INTEGER, -- NULL: it is pending
	doc        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX deliveries_position ON deliveries (webhook, position);
CREATE INDEX deliveries_pending ON deliveries (webhook, position) WHERE expires_at IS NULL;
CREATE INDEX deliveries_expiry ON deliveries (expires_at) WHERE expires_at IS NOT NULL;
`}
