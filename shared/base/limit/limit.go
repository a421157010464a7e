// Package limit declares values that several packages share: the export formats, the ranges and
// sizes of fields, and the layout of object keys. Each is declared only here.
//
// It imports only the standard library, so that a worker can import it.
package limit

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Issuer is the iss claim of every token that Sortie signs.
const Issuer = "sortie"

// Formats lists the export formats.
func Formats() []string { return []string{"mods", "dc", "marcxml"} }

// CheimarrosModes lists the values of the export option cheimarrosMode: how much of an entity's
// graph an export contains.
func CheimarrosModes() []string { return []string{"full", "minimal", "skip"} }

// The maximum values of the export options.
const (
	// ExportDepth is the maximum of maxDepth: how far below its root a recursive export goes. 0
	// means only the root.
	ExportDepth = 100
	// ExportBatch is the maximum of parallelBatchSize: how many entities the worker reads at
	// once. The minimum is 1.
	ExportBatch = 100
)

// The maximum sizes of fields, in bytes. Longer values of Message, StackTrace, Phase and Object
// are cut or replaced; longer values of other fields are refused.
const (
	BatchID          = 128
	IdempotencyKey   = 255
	FileName         = 255
	BulkPage         = 100 // runs in a bulk request
	FilterText       = 200 // characters in the text of a filter
	ReportedMachines = 50  // machines in a report about a cluster
	ObjectKey        = 1024
	Token            = 4096
	Phase            = 255
	Message          = 2 << 10
	StackTrace       = 16 << 10
	// Object is the size of a JSON object that a worker defines, such as metrics.
	Object = 16 << 10
	// Input is the size of a program's standard input in a request.
	Input = 256 << 10
	// Log is the size of a stored log: half of it from the start of the output, and half from
	// its end.
	Log = 1 << 20
	// LogChunk is the size of the data in one call that sends output.
	LogChunk = 32 << 10
	// Secret is the size of a named secret.
	Secret = 32 << 10
	// JobDocument is the size of the definition of a job.
	JobDocument = 64 << 10
	// HookBody is the part of a hook's response that is stored.
	HookBody = 4 << 10
	// HookTemplate is the template of the body of a webhook of a job.
	HookTemplate = 8 << 10
)

// The longest durations.
const (
	TimeLimit = 14 * 24 * time.Hour
	Retention = 365 * 24 * time.Hour
	// Duration applies to all other settings of a duration, and to the deadlines of runs, which
	// have at least MinDeadline.
	Duration    = 30 * 24 * time.Hour
	MinDeadline = 3 * time.Second
	// Ahead is how long before its scheduled time a run can be created.
	Ahead = 30 * 24 * time.Hour
	// HookTimeout applies to one try of a request to a hook.
	HookTimeout = 30 * time.Second
	// CancelGrace is the longest time that every platform waits between SIGTERM and SIGKILL:
	// Fly Machines with shared CPUs wait five minutes.
	CancelGrace = 5 * time.Minute
	// MaxReportMargin is the largest result of ReportMargin.
	MaxReportMargin = 5 * time.Second
	// TokenTTL is the maximum life of a worker's token (WC-2.4).
	TokenTTL = 2 * time.Hour
	// CallbackSlack is how long a callback token is valid after its attempt's deadline.
	CallbackSlack = time.Hour
	// TokenLife is longer than the life of every token: a callback token covers the longest
	// start limit, the longest time limit and the slack.
	TokenLife = Duration + TimeLimit + CallbackSlack
)

// EventFilter is the maximum length of an id in an event filter, in characters.
const EventFilter = 255

// ContextTokens is the maximum number of tokens in the prompt and answer of an inference task,
// if neither the catalog nor the engine defines it.
const ContextTokens = 32768

// QueuePositions is the number of runs at the head of a queue whose position is counted. It is
// the reported position of all later runs.
const QueuePositions = 1000

// ConcurrentRuns is the maximum limit of the concurrent runs of a job or a key.
const ConcurrentRuns = 10_000

// Inputs is the maximum size of the names and values of a run's inputs, in bytes.
const Inputs = 16 << 10

// NewestRuns is the maximum number of newest runs that a job keeps after their retention.
const NewestRuns = 1000

// KeyQueue is the maximum queue limit of a concurrency key.
const KeyQueue = 10_000

// The maximum limits of a pool: its slots, and the runs in its queue.
const (
	PoolSlots = 100_000
	PoolQueue = 10_000_000
)

// WorkerID is the maximum length of a worker id, in characters.
const WorkerID = 255

// The maximum values of a retry policy. The minimum is 1.
const (
	Attempts   = 100
	Multiplier = 10.0
)

// crockford are the digits of Crockford's base 32.
const crockford = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"

var (
	pi      = Form{First: "01234567", Rest: crockford, Most: 26}
	batchID = Form{First: Letters + Digits + "._:-", Rest: Letters + Digits + "._:-", Most: BatchID}
	model   = Form{First: Letters + Digits, Rest: Letters + Digits + "._:@-", Most: 128}
	name    = Form{First: Lower + Digits, Rest: Lower + Digits + "-", Most: 63}
)

// ValidName reports whether the text is a valid name of a job, a pool or a secret: 1 to 63
// lower-case letters, digits and hyphens, and no hyphen at the start.
func ValidName(text string) bool { return name.Matches(text) }

// ValidModel reports whether the text is a valid model id: 1 to 128 letters, digits, '.', '_',
// ':', '@' and '-', starting with a letter or a digit.
func ValidModel(text string) bool { return model.Matches(text) }

// ValidSecret reports whether the text is a valid value of a secret, which becomes an
// environment variable: 1 to Secret bytes of UTF-8 without a NUL.
func ValidSecret(text string) bool {
	return text != "" && len(text) <= Secret && utf8.ValidString(text) && !strings.Contains(text, "\x00")
}

// OutputText is the maximum size, in bytes, of an output that a run passes on as a variable.
const OutputText = 16 << 10

// ReservedVariable reports whether Sortie or a platform sets the environment variable for the
// program of a job.
func ReservedVariable(name string) bool {
	for _, prefix := range []string{"SORTIE_", "FLY_", "R2_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	switch name {
	case "TASK_ID", "TASK_ENVELOPE", "CALLBACK_URL", "PRIMARY_REGION", "TRACEPARENT":
		return true
	}
	return false
}

// LoaderVariable reports whether the environment variable changes how a program is loaded or
// how its runtime works, so that setting it can run code in the program. Jobs must not set one.
func LoaderVariable(name string) bool {
	return strings.HasPrefix(name, "LD_") || strings.HasPrefix(name, "DYLD_") || name == "GODEBUG" || name == "GOTRACEBACK"
}

// ReportMargin returns how long before its time limit a worker stops the work of an
// attempt, so that it can report the timeout.
func ReportMargin(timeLimit time.Duration) time.Duration { return min(MaxReportMargin, timeLimit/10) }

// ValidPI reports whether the text has the form of a PI: a ULID, which is 128 bits in
// Crockford's base 32.
func ValidPI(text string) bool { return len(text) == pi.Most && pi.Matches(text) }

// ValidBatchID reports whether the text is a valid batch id. A batch id becomes an environment
// variable and a log field, so it has 1 to BatchID letters, digits, '.', '_', ':' and '-'.
func ValidBatchID(text string) bool { return batchID.Matches(text) }

// Printable reports whether the text is UTF-8 without control characters.
func Printable(text string) bool {
	return utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f })
}

// Cut shortens the text to at most limit bytes, at a character boundary, and marks the cut. It
// replaces invalid UTF-8.
func Cut(text string, limit int) string {
	const mark = " … (cut)"
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= limit {
		return text
	}
	end := limit - len(mark)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}

// CutMark returns the line that replaces n omitted bytes of a log or an output.
func CutMark(n int64) []byte { return fmt.Appendf(nil, "\n[%d bytes are cut out here]\n", n) }
