package sqlite

// feedSteps are the migrations of the feed; see DB.Migrate. Times are Unix nanoseconds.
//
// The records of a stream are appended in the order of appended_at, which never decreases. So
// the expired records are the first ones.
var feedSteps = []string{`
CREATE TABLE feed_streams (
	n           INTEGER PRIMARY KEY,
	stream      TEXT NOT NULL,
	epoch       TEXT NOT NULL,
	newest      INTEGER NOT NULL,
	appended_at INTEGER NOT NULL, -- the last batch
	state       BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX feed_streams_stream ON feed_streams (stream);
CREATE TABLE feed_records (
	stream      INTEGER NOT NULL,
	position    INTEGER NOT NULL,
	appended_at INTEGER NOT NULL,
	at          INTEGER NOT NULL,
	id          TEXT NOT NULL,
	data        BLOB NOT NULL
) STRICT;
CREATE UNIQUE INDEX feed_records_position ON feed_records (stream, position);
CREATE INDEX feed_records_id ON feed_records (stream, id);
CREATE TABLE feed_marks (
	stream      INTEGER NOT NULL,
	position    INTEGER NOT NULL,
	appended_at INTEGER NOT NULL,
	data        BLOB NOT NULL,
	PRIMARY KEY (stream, position)
) STRICT, WITHOUT ROWID;
CREATE TABLE feed_cursors (
	stream   TEXT NOT NULL,
	consumer TEXT NOT NULL,
	position INTEGER NOT NULL,
	PRIMARY KEY (stream, consumer)
) STRICT, WITHOUT ROWID;
`, `
-- The form of data; see pack.
ALTER TABLE feed_records ADD COLUMN packed INTEGER NOT NULL DEFAULT 0;
`, `
-- A row may have several records; see rowsOf. Its position is that of the last one.
ALTER TABLE feed_records ADD COLUMN count INTEGER NOT NULL DEFAULT 1;
-- Only a row with one record has its id.
DROP INDEX feed_records_id;
CREATE INDEX feed_records_id ON feed_records (stream, id) WHERE packed < 3;
`, `
-- When a stream is due; 0 if it is not.
ALTER TABLE feed_streams ADD COLUMN due_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX feed_streams_due ON feed_streams (due_at, stream) WHERE due_at > 0;
`}
