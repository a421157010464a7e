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
)

// Config is the worker's environment, checked.
type Config struct {
	TaskID      string     // TASK_ID
	BatchID     string     // BATCH_ID, "single" where it is not set
	PI          record.PI  // PI
	Format      string     // EXPORT_FORMAT, "mods" where it is not set
	Options     Options    // EXPORT_OPTIONS
	Bucket      BucketAuth // R2_*
	CallbackURL string     // CALLBACK_URL; it carries a secret
	SourceURL   string     // SOURCE_API_URL
	MachineID   string     // FLY_MACHINE_ID, may be empty

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
}

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
		TaskID: required("TASK_ID"), BatchID: cmp.Or(env["BATCH_ID"], "single"), MachineID: env["FLY_MACHINE_ID"],
		Format: cmp.Or(env["EXPORT_FORMAT"], "mods"), Links: formats.DefaultLinks(),
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
		AccessKeyID: required("R2_ACCESS_KEY_ID"), SecretAccessKey: required("R2_SECRET_ACCESS_KEY"),
		AccountID: env["R2_ACCOUNT_ID"], Bucket: cmp.Or(env["R2_BUCKET"], "arke-exports"), Endpoint: env["R2_ENDPOINT"],
	}
	if c.Bucket.Endpoint == "" {
		required("R2_ACCOUNT_ID")
	} else if !isAddress(c.Bucket.Endpoint) {
		problem("R2_ENDPOINT is no http or https address")
	}
	if c.SourceURL = strings.TrimRight(required("SOURCE_API_URL"), "/"); c.SourceURL != "" && !isPlainAddress(c.SourceURL) {
		problem("SOURCE_API_URL is no http or https address without user, query and fragment")
	}
	if c.CallbackURL = required("CALLBACK_URL"); c.CallbackURL != "" && !isAddress(c.CallbackURL) {
		problem("CALLBACK_URL is no http or https address")
		c.CallbackURL = ""
	}
	return c, errors.Join(problems...)
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
