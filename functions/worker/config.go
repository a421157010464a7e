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
	"github.com/sortie-dev/sortie/shared/base/limit"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/worker"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Config is the validated environment of the worker.
type Config struct {
	TaskID      string     // TASK_ID
	BatchID     string     // BATCH_ID, default "single"
	PI          record.PI  // PI
	Format      string     // EXPORT_FORMAT, default "mods"
	Options     Options    // EXPORT_OPTIONS
	Bucket      BucketAuth // R2_*; empty if the output goes to the envelope's URL
	CallbackURL string     // CALLBACK_URL, a secret
	// Envelope is TASK_ENVELOPE. If it is set, CALLBACK_URL is not used.
	Envelope  *contract.TaskEnvelope
	SourceURL string // SOURCE_API_URL
	MachineID string // FLY_MACHINE_ID; optional

	// Links are the URLs in the document; the zero value selects
	// formats.DefaultLinks.
	Links formats.Links
	// Limits limit the requests to the source; zero values select the defaults.
	Limits source.Limits
}

// BucketAuth is the bucket for the output with its credentials.
type BucketAuth struct {
	AccountID       string // R2_ACCOUNT_ID
	AccessKeyID     string // R2_ACCESS_KEY_ID
	SecretAccessKey string // R2_SECRET_ACCESS_KEY
	Bucket          string // R2_BUCKET, default "arke-exports"
	Endpoint        string // R2_ENDPOINT; empty selects Cloudflare's for the account
	Region          string // R2_REGION; empty selects that of R2
}

// HasCredentials reports whether a credential is set.
func (b BucketAuth) HasCredentials() bool { return b.AccessKeyID != "" || b.SecretAccessKey != "" }

var taskID = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.~-]{0,199}$`)

// ParseConfig reads an environment of "NAME=value" entries. The error names every
// problem by its variable and contains no secret. The Config has the valid
// variables even then, so that the failure can be reported.
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
			problem("missing %s", name)
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
		problem("malformed TASK_ID: want letters, digits and _ . ~ -")
		c.TaskID = ""
	}
	if pi := required("PI"); pi != "" {
		var err error
		if c.PI, err = record.ParsePI(pi); err != nil {
			problem("malformed PI: %w", err)
		}
	}
	if _, ok := formatTable()[c.Format]; !ok {
		problem("EXPORT_FORMAT: want one of %s", strings.Join(FormatNames(), ", "))
	}
	var err error
	if c.Options, err = ParseOptions(env["EXPORT_OPTIONS"]); err != nil {
		problems = append(problems, err)
	}
	c.Bucket = BucketAuth{
		AccessKeyID: env["R2_ACCESS_KEY_ID"], SecretAccessKey: env["R2_SECRET_ACCESS_KEY"],
		AccountID: env["R2_ACCOUNT_ID"], Bucket: cmp.Or(env["R2_BUCKET"], limit.UploadsBucket), Endpoint: env["R2_ENDPOINT"], Region: env["R2_REGION"],
	}
	if c.Envelope == nil || c.Envelope.Output == nil || c.Bucket.HasCredentials() {
		required("R2_ACCESS_KEY_ID")
		required("R2_SECRET_ACCESS_KEY")
		if c.Bucket.Endpoint == "" {
			required("R2_ACCOUNT_ID")
		} else if !isURL(c.Bucket.Endpoint) {
			problem("R2_ENDPOINT: want an http or https URL")
		}
	}
	if c.SourceURL = strings.TrimRight(required("SOURCE_API_URL"), "/"); c.SourceURL != "" && !isPlainURL(c.SourceURL) {
		problem("SOURCE_API_URL: want an http or https URL without user, query and fragment")
	}
	if c.CallbackURL = env["CALLBACK_URL"]; c.Envelope == nil {
		required("CALLBACK_URL")
	}
	if c.CallbackURL != "" && !isURL(c.CallbackURL) {
		problem("CALLBACK_URL: want an http or https URL")
		c.CallbackURL = ""
	}
	return c, errors.Join(problems...)
}

// envelope reads TASK_ENVELOPE. It returns nil if it is empty or invalid.
func envelope(text string, problem func(string, ...any)) *contract.TaskEnvelope {
	if text == "" {
		return nil
	}
	e, err := sdk.ParseEnvelope([]byte(text))
	if err != nil {
		problem("invalid %s: %w", contract.EnvelopeVariable, err)
		return nil
	}
	return &e
}

// assignment returns the task for the SDK.
func (c Config) assignment() sdk.Assignment {
	if c.Envelope != nil {
		return sdk.Assignment{Envelope: c.Envelope, TaskID: c.TaskID}
	}
	return sdk.Assignment{TaskID: c.TaskID, BatchID: c.BatchID, CallbackURL: c.CallbackURL}
}

// FileName returns the name of the output: {pi}.xml, or {pi}-collection.xml for a
// recursive export.
func (c Config) FileName() string {
	if c.Options.Recursive {
		return c.PI.String() + "-collection.xml"
	}
	return c.PI.String() + ".xml"
}

// Key returns the key of the output in the bucket.
func (c Config) Key() string { return "exports/" + c.TaskID + "/" + c.FileName() }

func isURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != ""
}

func isPlainURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && isURL(text) && u.User == nil && u.RawQuery == "" && u.Fragment == ""
}
