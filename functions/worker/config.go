package worker

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/sortie-dev/sortie/functions/worker/formats"
	"github.com/sortie-dev/sortie/functions/worker/record"
	"github.com/sortie-dev/sortie/functions/worker/source"
	"github.com/sortie-dev/sortie/shared/contract"
	sdk "github.com/sortie-dev/sortie/shared/worker"
)

// Config is the worker's environment, checked.
type Config struct {
	TaskID      string     // TASK_ID
	BatchID     string     // BATCH_ID, "single" where it is not set
	PI          record.PI  // PI
	Format      string     // EXPORT_FORMAT, "mods" where it is not set
	Options     Options    // EXPORT_OPTIONS
	Bucket      BucketAuth // R2_*; empty where the output goes to the envelope's address
	CallbackURL string     // CALLBACK_URL; it carries a secret
	// Envelope is TASK_ENVELOPE; where it is set, CALLBACK_URL is not used.
	Envelope  *contract.TaskEnvelope
	SourceURL string // SOURCE_API_URL
	MachineID string // FLY_MACHINE_ID, may be empty

	// Links are the addresses that are printed; the zero value is
	// formats.DefaultLinks.
	Links formats.Links
	// Limits bound the requests to the source; zero values are defaults.
	Limits source.Limits
}

// BucketAuth is where the output goes and who may put it there.
type BucketAuth struct {
	AccountID       string // R2_ACCOUNT_ID
	AccessKeyID     string // R2_ACCESS_KEY_ID
	SecretAccessKey string // R2_SECRET_ACCESS_KEY
	Bucket          string // R2_BUCKET, "arke-exports" where it is not set
	Endpoint        string // R2_ENDPOINT; empty is Cloudflare's of the account
	Region          string // R2_REGION; empty is R2's only one
}

// Open says whether there are credentials for it.
func (b BucketAuth) Open() bool { return b.AccessKeyID != "" || b.SecretAccessKey != "" }

var taskID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.~-]{0,199}$`)

// ParseConfig reads the environment, "NAME=value" each. All problems are named
// at once, by variable and without any value of a secret. What could be read
// is in the Config even then, so that the failure can be reported.
func ParseConfig(environ []string) (Config, error) {
	env := make(map[string]string, len(environ))
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		env[name] = strings.TrimSpace(value)
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	required := func(name string) string {
		if env[name] == "" {
			problem("%s is not set", name)
		}
		return env[name]
	}

	c := Config{
		TaskID: env["TASK_ID"], BatchID: cmp.Or(env["BATCH_ID"], "single"), MachineID: env["FLY_MACHINE_ID"],
		Format: cmp.Or(env["EXPORT_FORMAT"], "mods"), Links: formats.DefaultLinks(),
	}
	c.Envelope = envelope(env[contract.EnvelopeVariable], problem)
	if c.Envelope != nil {
		c.TaskID = c.Envelope.TaskID
	} else {
		required("TASK_ID")
	}
	if c.TaskID != "" && !taskID.MatchString(c.TaskID) {
		problem("TASK_ID must be letters, digits, and _ . ~ -")
		c.TaskID = ""
	}
	if pi := required("PI"); pi != "" {
		var err error
		if c.PI, err = record.ParsePI(pi); err != nil {
			problem("PI is none: %w", err)
		}
	}
	if _, ok := formatTable()[c.Format]; !ok {
		problem("EXPORT_FORMAT must be one of %s", strings.Join(FormatNames(), ", "))
	}
	var err error
	if c.Options, err = ParseOptions(env["EXPORT_OPTIONS"]); err != nil {
		problems = append(problems, err)
	}
	c.Bucket = BucketAuth{
		AccessKeyID: env["R2_ACCESS_KEY_ID"], SecretAccessKey: env["R2_SECRET_ACCESS_KEY"],
		AccountID: env["R2_ACCOUNT_ID"], Bucket: cmp.Or(env["R2_BUCKET"], "arke-exports"), Endpoint: env["R2_ENDPOINT"], Region: env["R2_REGION"],
	}
	if c.Envelope == nil || c.Envelope.Output == nil || c.Bucket.Open() {
		required("R2_ACCESS_KEY_ID")
		required("R2_SECRET_ACCESS_KEY")
		if c.Bucket.Endpoint == "" {
			required("R2_ACCOUNT_ID")
		} else if !isAddress(c.Bucket.Endpoint) {
			problem("R2_ENDPOINT is no http or https address")
		}
	}
	if c.SourceURL = strings.TrimRight(required("SOURCE_API_URL"), "/"); c.SourceURL != "" && !isPlainAddress(c.SourceURL) {
		problem("SOURCE_API_URL is no http or https address without user, query and fragment")
	}
	if c.CallbackURL = env["CALLBACK_URL"]; c.Envelope == nil {
		required("CALLBACK_URL")
	}
	if c.CallbackURL != "" && !isAddress(c.CallbackURL) {
		problem("CALLBACK_URL is no http or https address")
		c.CallbackURL = ""
	}
	return c, errors.Join(problems...)
}

// envelope reads TASK_ENVELOPE; nil where there is none.
func envelope(text string, problem func(string, ...any)) *contract.TaskEnvelope {
	if text == "" {
		return nil
	}
	e, err := sdk.ParseEnvelope([]byte(text))
	if err != nil {
		problem("%s is not valid: %w", contract.EnvelopeVariable, err)
		return nil
	}
	return &e
}

// assignment is whom the worker talks to.
func (c Config) assignment() sdk.Assignment {
	if c.Envelope != nil {
		return sdk.Assignment{Envelope: c.Envelope, TaskID: c.TaskID}
	}
	return sdk.Assignment{TaskID: c.TaskID, BatchID: c.BatchID, CallbackURL: c.CallbackURL}
}

// FileName is the output's: {pi}.xml, or {pi}-collection.xml where descendants
// are exported too.
func (c Config) FileName() string {
	if c.Options.Recursive {
		return c.PI.String() + "-collection.xml"
	}
	return c.PI.String() + ".xml"
}

// Key is where the output lies in the bucket.
func (c Config) Key() string { return "exports/" + c.TaskID + "/" + c.FileName() }

func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func isPlainAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && isAddress(text) && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
