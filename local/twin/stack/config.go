package stack

import (
	"crypto/x509"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/sortie-dev/sortie/functions/console/page"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/shared/adapter/container"
	"github.com/sortie-dev/sortie/shared/adapter/nats"
	"github.com/sortie-dev/sortie/shared/app/runs"
	service "github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/base/setting/local"
	"github.com/sortie-dev/sortie/shared/base/setting/otel"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/port"
)

// Config configures a Stack.
type Config struct {
	// Addr is the address of the HTTP API, such as "127.0.0.1:8080". Port 0 means the folder's
	// previous port, or any free port.
	Addr string
	// DataDir is the folder of all data. It is created if it does not exist.
	DataDir string
	// Images maps image names to local programs and their first arguments. The configured
	// export image runs the built-in worker unless it is in Images.
	Images map[string][]string
	// ReportWithin limits how long a wrapper retries each part of a program's result while the
	// server is unreachable; 0 means a minute.
	ReportWithin time.Duration
	// Containers are the possible addresses of a container engine; empty means no engine. The
	// engine runs the images that are not in Images.
	Containers container.Addresses
	// Engines are the inference servers. Each kind gets one pool: pool0, pool1 and so on.
	Engines []EngineAddress
	// SourceURL is the entity API that workers read. Empty means the value in Settings, or else
	// the API of the sample collection.
	SourceURL string
	// Executable is the command that starts this program again: its path, and the arguments
	// before the command "worker" or "machine-supervisor".
	Executable []string
	// Supervisor is the command that supervises the programs of machines. Empty means
	// sortie-exec in the folder of Executable, or else Executable.
	Supervisor []string
	Settings   Settings
	Log        *slog.Logger
	// Version is the version in the response of /healthz.
	Version string
	// Path is the PATH of programs; empty means environment.DefaultPath.
	Path string
	// RootCAs are the trusted certificates of services with OpenAI's API, hooks, buckets and queues;
	// nil means those of the host.
	RootCAs *x509.CertPool
	// Starter runs the programs of machines; nil runs processes. Runner creates machines; nil
	// creates them by the Fly Machines API. Both are for benchmarks.
	Starter flymachines.Starter
	Runner  port.Runner
	// Clock is the clock of all parts; nil means the host's clock. Tests of old folders use
	// another.
	Clock clock.Clock
	// SweepInterval is the time between two sweeps; 0 means one second.
	SweepInterval time.Duration
	// KeepMachines is the time for which the resources of a gone machine are kept: its
	// container, or its Job with the pod and the Secret. 0 means container.DefaultKeepFor or
	// kubernetes.DefaultKeepFor.
	KeepMachines time.Duration
}

// Settings are the configuration from the environment.
type Settings struct {
	// Tokens are bearer tokens of clients with all scopes but exec. Without them and
	// without records in TokensFile, the API must listen on loopback.
	Tokens []string
	// Service configures the use cases. The stack adds its addresses.
	Service runs.Config
	// Traces configures the export of traces.
	Traces otel.Config
	// Bus configures the server that receives the events; without a URL no server does.
	Bus nats.Config
	// Kubernetes is the cluster for pools with the runner kubernetes; without a file there is
	// no cluster.
	Kubernetes local.Cluster
	// Disk limits the disk space of the records.
	Disk local.Disk
	// Set are the variables of these parts that are set. None of them has a secret.
	Set []page.Setting
}

// SettingsFrom reads AUTH_TOKEN (tokens separated by commas), SORTIE_BUS and
// SORTIE_BUS_CREDENTIALS, and the variables of service.Read, otel.Read, local.ReadCluster and
// local.ReadDisk. environ is the whole environment ("NAME=value"); it reports misspelt variables in
// it. The error joins all problems.
func SettingsFrom(lookup func(string) (string, bool), environ []string) (Settings, error) {
	service, err := service.Read(lookup)
	err = errors.Join(err, setting.Misspelt(environ, variables()))
	given, _ := lookup("AUTH_TOKEN")
	tokens, tokensErr := access.ParseTexts(given)
	if tokensErr != nil {
		err = errors.Join(err, tokensErr)
	}
	traces, tracesErr := otel.Read(lookup)
	bus, busErr := readBus(lookup)
	cluster, clusterErr := local.ReadCluster(lookup)
	records, recordsErr := local.ReadDisk(lookup)
	return Settings{Tokens: tokens, Service: service, Traces: traces, Bus: bus, Kubernetes: cluster, Disk: records, Set: setIn(lookup)},
		errors.Join(err, tracesErr, busErr, clusterErr, recordsErr)
}

// documented returns the settings of the local system that the console shows.
func documented() []setting.Setting {
	return slices.Concat(service.Settings(), local.ClusterSettings(), local.DiskSettings())
}

// setIn returns the settings that are set.
func setIn(lookup func(string) (string, bool)) (found []page.Setting) {
	for _, s := range documented() {
		if value, _ := lookup(s.Name); value != "" {
			found = append(found, page.Setting{Name: s.Name, Value: value})
		}
	}
	return found
}

// variables lists the SORTIE_ variables of the local system, of the command line and
// of workers.
func variables() []string {
	names := []string{"SORTIE_URL", "SORTIE_TOKEN", "SORTIE_CHECK", "SORTIE_TASK_ID", "SORTIE_ATTEMPT", "SORTIE_OUTPUT", "SORTIE_PROGRESS_FD", busURL, busCredentials}
	for _, s := range documented() {
		names = append(names, s.Name)
	}
	return names
}

// Addresses are the addresses of the parts.
type Addresses struct {
	URL      string `json:"url"`
	S3       string `json:"s3"`
	Machines string `json:"machines"`
	Source   string `json:"source"`
	Bucket   string `json:"bucket"`
	Data     string `json:"data"`
	// TokenFile has a client token of the folder.
	TokenFile string `json:"tokenFile"`
	// Models are the models of the configured engines. ModelSlots are their concurrent tasks,
	// in the same order.
	Models     []string `json:"models,omitempty"`
	ModelSlots []int    `json:"modelSlots,omitempty"`
}
