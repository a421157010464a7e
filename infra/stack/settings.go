package stack

import (
	"time"

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// Settings is what the stack of one stage is told. ReadSettings makes it; a
// zero value is no stage.
type Settings struct {
	// Stage names the stage: in the API's path, in every resource's name, in tags.
	Stage string
	// Account and Region are where it is deployed; empty leaves them to the
	// credentials of whoever deploys.
	Account, Region string
	// Domain is the API's own host name, with the ARN of its certificate; both
	// or none. The API is at its root: API Gateway would leave a base path in the
	// path that a function is told.
	Domain, Certificate string
	// AlarmEmail is told of every alarm; empty leaves the topic without a reader.
	AlarmEmail string
	// LogDays is how long logs are kept; one of the numbers that CloudWatch has.
	LogDays int
	// Outputs says where outputs lie.
	Outputs OutputsKind
	// OutputsEndpoint is the S3 API of the outputs where it is neither R2's nor
	// the region's own.
	OutputsEndpoint string
	// UploadsBucket and KeptBucket name the buckets with outputs=r2.
	UploadsBucket, KeptBucket string
	// OutputsKeySerial is raised to have new access keys to the outputs made,
	// with outputs=s3. At least 1.
	OutputsKeySerial int
	// Origins are those whose pages may call the API; none is CORS off.
	Origins []string
	// Retain keeps the data when the stack is destroyed.
	Retain bool
	// TableStream is the ARN of the stream of a table that was restored, which the
	// stack then uses instead of one of its own; empty makes one.
	TableStream string
	// Arch is what the functions are built for: arm64 or amd64.
	Arch string
	// LocalStack is the URL of the LocalStack that this is for; empty on AWS.
	LocalStack string
	// SigningKeys names the keys of tokens, the one that signs first.
	SigningKeys []string
	// Memory is MB per function, Reserved the concurrent calls kept for one.
	Memory, Reserved map[string]int
	// ClientRate and WorkerRate are requests/s that the API lets through, per
	// method; twice as many may come in a burst.
	ClientRate, WorkerRate int
	// Stream has downloads streamed; otherwise they are buffered.
	Stream bool
	// Version is what is deployed, for /healthz; empty leaves Lambda's number.
	Version string
	// Tracing has calls traced by X-Ray.
	Tracing bool
	// FlyApps are the apps that machines are made in, FlyURL the Machines API;
	// empty is the public one.
	FlyApps []string
	FlyURL  string
	// Service has the settings that the functions are told beside the stack's
	// own, by the names of orchestrator.Settings.
	Service map[string]string
	// Build is the folder of the built functions: Build/Arch/NAME/bootstrap.
	Build string
}

// OutputsKind is where outputs lie.
type OutputsKind string

// The two places for outputs.
const (
	// R2 is Cloudflare's: the stack has the secret, and no bucket.
	R2 OutputsKind = "r2"
	// S3 is two buckets of the stack.
	S3 OutputsKind = "s3"
)

// The limits of what may be told.
const (
	nameMost      = 20
	memoryLeast   = 128
	memoryMost    = 10_240
	reservedMost  = 10_000
	rateMost      = 10_000 // AWS: requests/s of an account's API Gateway
	localURL      = "http://127.0.0.1:4566"
	defaultStage  = "dev"
	defaultApp    = "arke-mods-export-worker"
	defaultMemory = 128
)

// logDays are the retentions that CloudWatch Logs has, in days.
var logDays = []int{1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653}

// deployed are settings of the service whose default in a deployed Sortie is
// another than on a laptop.
var deployed = map[string]string{
	redirectOver: "8388608",
}

// What is larger is fetched from the bucket. An answer that is not streamed has
// to be an event of 6 MB with its body as text, in which base64 takes four bytes
// for three and JSON two for a quotation mark or the end of a line.
const (
	redirectOver         = "SORTIE_REDIRECT_OVER"
	redirectOverBuffered = "3145728"
)

// ours are settings of the service that the stack sets itself.
var ours = []string{"SORTIE_PUBLIC_URL"}

// httpTimeout is how long a front door may take: less than the 29 s that API
// Gateway waits.
const httpTimeout = 28 * time.Second

// serviceNames lists the settings that may be passed through.
func serviceNames() []string {
	var names []string
	for _, s := range orchestrator.Settings() {
		names = append(names, s.Name)
	}
	return names
}
