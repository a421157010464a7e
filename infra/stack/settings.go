package stack

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

// Settings is the configuration of one stage's stack. ReadSettings returns it. The zero value
// is not valid.
type Settings struct {
	// Stage is the name of the stage. It is part of the API's path, of every resource's name
	// and of tags.
	Stage string
	// Account and Region are where the stack is deployed. If empty, they are those of the
	// credentials.
	Account, Region string
	// Domain is the API's own host name and Certificate the ARN of its certificate. Both are
	// set or both are empty. The API is at the root of the domain, because API Gateway passes a
	// base path to the function as part of the path.
	Domain, Certificate string
	// AlarmEmail receives all alarms. If empty, the topic has no subscriber.
	AlarmEmail string
	// LogDays is the retention of logs in days. It is one of the numbers that CloudWatch
	// allows.
	LogDays int
	// Outputs is the store of outputs. The default is R2 if the stage exports, else S3.
	Outputs OutputsKind
	// OutputsEndpoint is the S3 API of the outputs, if it is neither R2's nor the region's own.
	OutputsEndpoint string
	// UploadsBucket and AcceptedBucket are the names of the buckets with outputs=r2.
	UploadsBucket, AcceptedBucket string
	// OutputsKeys are the names of the access keys to the outputs with outputs=s3, one or two.
	// Sortie uses the first.
	OutputsKeys []string
	// Origins are the origins whose pages may call the API. Without origins CORS is off.
	Origins []string
	// Retain keeps the data when the stack is destroyed.
	Retain bool
	// TableStream is the ARN of the stream of a restored table. The stack then uses that table.
	// If empty, the stack adds a table.
	TableStream string
	// Arch is the processor architecture of the functions: arm64 or amd64.
	Arch string
	// LocalStack is the URL of the LocalStack to deploy to. It is empty on AWS.
	LocalStack string
	// SigningKeys are the names of the keys for tokens. The first key signs.
	SigningKeys []string
	// Memory is the memory in MB per function. Reserved is the reserved concurrency per
	// function.
	Memory, Reserved map[string]int
	// ClientRate and WorkerRate are the API's limits in requests/s per method. A burst may be
	// twice as large. All methods of a path that one function serves for clients share one
	// limit.
	ClientRate, WorkerRate int
	// Stream streams downloads. Otherwise they are buffered.
	Stream bool
	// Readers is the maximum number of open event streams of a tenant.
	Readers int
	// Version is the version that /healthz shows. If empty, it is Lambda's number.
	Version string
	// Tracing enables X-Ray.
	Tracing bool
	RunnerSettings
	OptionSettings
	// Service contains settings of service.Settings for the functions, by name. Traces contains
	// settings of otel.Settings.
	Service, Traces map[string]string
	// Build is the folder of the built programs: Build/Arch/NAME/bootstrap.
	Build string
}

// OutputsKind is the store of outputs.
type OutputsKind string

// The two stores of outputs.
const (
	// R2 is Cloudflare R2. The stack contains the secret and no bucket.
	R2 OutputsKind = "r2"
	// S3 means two buckets in the stack.
	S3 OutputsKind = "s3"
)

// Limits and defaults.
const (
	stageLength  = 20
	leastMemory  = 128
	mostMemory   = 10_240
	mostReserved = 10_000
	mostRate     = 10_000 // AWS: requests/s of an account's API Gateway
	// mostAccessKeys is the maximum number of access keys of a user (IAM quotas).
	mostAccessKeys = 2
	localURL       = "http://127.0.0.1:4566"
	defaultStage   = "dev"
	defaultMemory  = 128
)

// logDays are the retentions that CloudWatch Logs allows, in days.
var logDays = []string{"1", "3", "5", "7", "14", "30", "60", "90", "120", "150", "180", "365", "400", "545", "731", "1096", "1827", "2192", "2557", "2922", "3288", "3653"}

// deployed contains the settings of the service whose default differs in a deployment.
var deployed = map[string]string{
	redirectOver: "8388608",
}

// A download above redirectOver bytes is redirected to the bucket. A buffered response is an
// event of at most 6 MB with the body as text. In the text, base64 needs four bytes for three,
// and JSON two for a quotation mark or an end of line.
const (
	redirectOver         = "SORTIE_REDIRECT_OVER"
	redirectOverBuffered = "3145728"
)

// own lists settings of the service that the stack sets itself.
var own = []string{"SORTIE_PUBLIC_URL"}

// httpTimeout is the timeout of a front door. It is less than the 29 s for which API Gateway
// waits.
const httpTimeout = 28 * time.Second

var (
	simpleName  = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	hostName    = regexp.MustCompile(`^([a-z0-9]([a-z0-9-]*[a-z0-9])?\.)+[a-z]{2,}$`)
	accountName = regexp.MustCompile(`^[0-9]{12}$`)
	regionName  = regexp.MustCompile(`^[a-z]{2}(-[a-z]+)+-[0-9]$`)
	certificate = regexp.MustCompile(`^arn:[a-z-]+:acm:[a-z0-9-]+:[0-9]{12}:certificate/.+$`)
	version     = regexp.MustCompile(`^[A-Za-z0-9._+-]{1,64}$`)
	mail        = regexp.MustCompile(`^[^@\s]+@[^@\s]+$`)
	bucketName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

// settings returns the keys, bound to s, in the order of the documentation.
func settings(s *Settings) []setting.Setting {
	return append([]setting.Setting{
		setting.Pattern(&s.Stage, "stage", defaultStage, "the stage: in the API's path, in names, in tags", simpleName),
		setting.Pattern(&s.Account, "account", "", "the account; empty is that of the credentials", accountName),
		setting.Pattern(&s.Region, "region", "", "the region; empty is that of the credentials", regionName),
		setting.Pattern(&s.Domain, "domain", "", "the API's own host name; empty is API Gateway's", hostName),
		setting.Pattern(&s.Certificate, "certificate", "", "the ARN of the domain's certificate, of the same region", certificate),
		setting.Pattern(&s.AlarmEmail, "alarmEmail", "", "the address that alarms are sent to", mail),
		choice(&s.LogDays, "logDays", "30", "days that logs are kept", logDays),
		setting.OneOf((*string)(&s.Outputs), "outputs", "", "r2, or s3 for buckets of the stack; empty is r2 with exports, otherwise s3", string(R2), string(S3)),
		setting.URL(&s.OutputsEndpoint, "outputsEndpoint", "", "the S3 API of the outputs; empty is R2's, or the region's with s3"),
		setting.Pattern(&s.UploadsBucket, "uploadsBucket", limit.UploadsBucket, "with r2: the bucket that workers write to", bucketName),
		setting.Pattern(&s.AcceptedBucket, "acceptedBucket", limit.AcceptedBucket, "with r2: the bucket that downloads come from", bucketName),
		setting.List(&s.OutputsKeys, "outputsKeys", "1", "with s3: names of the access keys, one or two; the first one is used"),
		setting.List(&s.Origins, "origins", "", "origins of pages that may call the API; without any, CORS is off"),
		setting.Bool(&s.Retain, "retain", "true", "whether data is kept when the stack is destroyed"),
		setting.Pattern(&s.TableStream, "tableStream", "", "the ARN of the stream of a restored table", streamName),
		setting.OneOf(&s.Arch, "arch", "arm64", "the processor of the functions: arm64 or amd64", "arm64", "amd64"),
		setting.Func("localstack", "false", "true, or the URL of LocalStack", s.parseLocalStack),
		setting.List(&s.SigningKeys, "signingKeys", "1", "names of the keys for tokens; the first one signs"),
		perFunction(&s.Memory, "memory", fmt.Sprintf("MB of functions that need other than %d, such as sweep=512,registry=512", defaultMemory), leastMemory, mostMemory),
		perFunction(&s.Reserved, "reserved", "reserved concurrency of functions, such as callback=200,sweep=2; AWS keeps at least 100 unreserved, 10 in a new account", 0, mostReserved),
		setting.Integer(&s.ClientRate, "clientRate", "200", "requests/s of each method for clients; twice as many in a burst", 1, mostRate),
		setting.Integer(&s.WorkerRate, "workerRate", "2000", "requests/s of each method for workers; twice as many in a burst", 1, mostRate),
		setting.Bool(&s.Stream, "stream", "true", "whether downloads are streamed; otherwise they are buffered"),
		setting.Integer(&s.Readers, "readers", "50", "event streams that a tenant can have open", 1, mostReserved),
		setting.Pattern(&s.Version, "version", "", "the version shown by /healthz; empty is Lambda's number", version),
		setting.Bool(&s.Tracing, "tracing", "false", "whether X-Ray traces calls"),
	}, slices.Concat(s.RunnerSettings.settings(), s.OptionSettings.settings())...)
}

// Documented returns the keys for the documentation.
func Documented() []setting.Setting { return settings(&Settings{}) }

// Variable returns the environment variable of a key: "logDays" is STACK_LOG_DAYS.
func Variable(key string) string {
	var name strings.Builder
	name.WriteString("STACK_")
	for _, r := range key {
		if unicode.IsUpper(r) {
			name.WriteByte('_')
		}
		name.WriteRune(unicode.ToUpper(r))
	}
	return name.String()
}

// choice returns a setting whose value is one of the numbers in choices.
func choice(to *int, key, fallback, meaning string, choices []string) setting.Setting {
	return setting.Func(key, fallback, meaning, func(text string) (err error) {
		if !slices.Contains(choices, text) {
			return fmt.Errorf("%q is not allowed, want one of %s", text, strings.Join(choices, ", "))
		}
		*to, err = setting.ParseInteger(text, 0, 1<<30)
		return err
	})
}

// perFunction returns a setting of the form "name=number,...", with names of functions.
func perFunction(to *map[string]int, key, meaning string, least, most int) setting.Setting {
	return setting.Func(key, "", meaning, func(text string) error {
		*to = map[string]int{}
		parts, err := setting.ParseList(text)
		problems := []error{err}
		for _, part := range parts {
			name, value, _ := strings.Cut(part, "=")
			if !slices.Contains(Functions(), name) {
				problems = append(problems, fmt.Errorf("unknown function %q, want one of %s", name, strings.Join(Functions(), ", ")))
			}
			n, err := setting.ParseInteger(value, least, most)
			if err != nil {
				problems = append(problems, fmt.Errorf("%s: %w", name, err))
			}
			(*to)[name] = n
		}
		return errors.Join(problems...)
	})
}

func (s *Settings) parseLocalStack(text string) error {
	switch {
	case text == "true":
		s.LocalStack = localURL
	case text == "false":
		s.LocalStack = ""
	case setting.IsURL(text):
		s.LocalStack = strings.TrimRight(text, "/")
	default:
		return fmt.Errorf("%q is not valid, want true, false or a URL", text)
	}
	return nil
}

// serviceNames returns the names of the settings of the service.
func serviceNames() []string {
	var names []string
	for _, s := range service.Settings() {
		names = append(names, s.Name)
	}
	return names
}
