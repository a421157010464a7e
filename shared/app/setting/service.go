// Package service declares the settings that all deployments of Sortie share, and reads them
// into a runs.Config. Settings of a single kind of deployment are read where they
// are used.
package service

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/base/setting"
	"github.com/sortie-dev/sortie/shared/domain/budget"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/label"
	"github.com/sortie-dev/sortie/shared/domain/spec"
)

// The default Fly app and worker image of the export contract.
const (
	DefaultApp   = "arke-mods-export-worker"
	DefaultImage = "registry.fly.io/" + DefaultApp + ":latest"
)

// The variables of spec.Policy that adapt to other settings unless they are set.
const (
	heartbeatInterval = "SORTIE_HEARTBEAT_INTERVAL"
	heartbeatTimeout  = "SORTIE_HEARTBEAT_TIMEOUT"
	recordRetention   = "SORTIE_RECORD_RETENTION"
	retryMaxDelay     = "SORTIE_RETRY_MAX_DELAY"
)

// settings returns the settings, bound to c.
func settings(c *runs.Config) []setting.Setting {
	p := &c.Policy
	c.ForwardLimit = new(int)
	return append([]setting.Setting{
		setting.Text(&c.Image, "SORTIE_EXPORT_IMAGE", DefaultImage, "the worker's image"),
		setting.Text(&c.Region, "SORTIE_REGION", "ord", "the region of machines; empty lets the platform choose"),
		setting.Integer(&c.CPUs, "SORTIE_MACHINE_CPUS", "1", "shared CPUs of a machine", 1, 16),
		setting.Func("SORTIE_MACHINE_MEMORY", "256", "MB of a machine, a multiple of 256", func(text string) (err error) {
			if c.MemoryMB, err = setting.ParseInteger(text, 256, 131_072); err == nil && c.MemoryMB%256 != 0 {
				err = fmt.Errorf("%s is not a multiple of 256", text)
			}
			return err
		}),
		setting.OneOf(&c.BucketCredentials, "SORTIE_BUCKET_CREDENTIALS", spec.BucketVariables,
			"variables gives workers a key pair for the uploads bucket, envelope only presigned URLs",
			spec.BucketVariables, spec.BucketEnvelope),
		setting.Integer(&c.MaxMachines, "SORTIE_MAX_MACHINES", "16", "concurrent machines; 0 is no limit", 0, limit.PoolSlots),
		setting.Integer(&c.QueueLimit, "SORTIE_QUEUE_LIMIT", "100000", "queued runs above which new ones get 429; 0 is no limit", 0, limit.PoolQueue),
		setting.Integer(c.ForwardLimit, "SORTIE_FORWARD_LIMIT", "10800", "running attempts above which sweeps find overdue heartbeats, instead of Step Functions; 18000 for a quota of 500 a second", 0, 10_000_000),
		setting.Duration(&p.StartTimeout, "SORTIE_START_TIMEOUT", "10m", "time limit for the start of a machine", time.Second, limit.Duration),
		setting.Duration(&p.TimeLimit, "SORTIE_TIME_LIMIT", "1h", "time limit of an attempt", 3*time.Second, limit.TimeLimit),
		setting.Duration(&p.HeartbeatInterval, heartbeatInterval, "30s", "interval of a worker's heartbeats", time.Second, limit.Duration),
		setting.Duration(&p.HeartbeatTimeout, heartbeatTimeout, "90s", "longest time between two calls of a worker; at least twice the interval", 2*time.Second, limit.Duration),
		setting.Duration(&p.CancelGrace, "SORTIE_CANCEL_GRACE", "30s", "time for a worker to stop after a cancel request", time.Second, limit.CancelGrace),
		setting.Duration(&p.QueueTimeout, "SORTIE_QUEUE_TIMEOUT", "24h", "longest time in the queue for a machine", time.Second, limit.Duration),
		setting.Duration(&p.OutputRetention, "SORTIE_OUTPUT_RETENTION", "24h", "how long an output is kept", time.Second, limit.Retention),
		setting.Bytes(&c.DigestRead, "SORTIE_DIGEST_READ", "67108864", "bytes up to which an output is read to verify its SHA-256, if the object store reports none; larger ones have no digest"),
		setting.Bytes(&c.ArtifactLimit, "SORTIE_ARTIFACT_LIMIT", "67108864", "bytes of an artifact that is not JSON; on AWS at most 4194304"),
		setting.Duration(&c.DownloadRetention, "SORTIE_DOWNLOAD_RETENTION", "1h", "how long an output is kept after its last byte was downloaded", 0, limit.Retention),
		setting.Duration(&c.EventRetention, "SORTIE_EVENT_RETENTION", "168h", "how long published events can be read again", time.Minute, limit.Retention),
		setting.Duration(&c.StreamLife, "SORTIE_STREAM_LIFE", "14m", "longest life of a stream of events, which ends at a random time of the last seventh", time.Second, limit.Duration),
		setting.Integer(&c.StreamReaders, "SORTIE_STREAM_READERS", "200", "streams of events that a tenant can have open", 1, 100_000),
		setting.Duration(&p.RecordRetention, recordRetention, "168h", "how long a record is kept after the end; at least as long as the output", time.Second, limit.Retention),
		setting.Integer(&p.Retry.MaxAttempts, "SORTIE_MAX_ATTEMPTS", "3", "attempts of a run whose worker is lost", 1, 100),
		setting.Integer(&p.Retry.MaxFurtherStarts, "SORTIE_FURTHER_STARTS", "3", "further starts of a machine that did not start", 0, 100),
		setting.Duration(&p.Retry.InitialDelay, "SORTIE_RETRY_DELAY", "2s", "delay before the second attempt; doubled for each further one", time.Second, limit.Duration),
		setting.Duration(&p.Retry.MaxDelay, retryMaxDelay, "60s", "longest delay before an attempt", time.Second, limit.Duration),
		setting.Duration(&c.TokenTTL, "SORTIE_TOKEN_TTL", "1h", "life of a worker's token; at least that of its attempt, up to 2h; heartbeats renew it", time.Minute, limit.TokenTTL),
		setting.Bytes(&c.RedirectOver, "SORTIE_REDIRECT_OVER", "0", "bytes above which a download is redirected to the bucket; 0 never redirects"),
		setting.Duration(&c.PresignFor, "SORTIE_PRESIGN_FOR", "15m", "life of the URL of such a redirect", time.Second, 7*24*time.Hour),
		hooks("SORTIE_HOOK_ALLOW", "", "what hooks may reach although it is not public, with commas: NAME, NAME:PORT, ADDRESS, ADDRESS:PORT or RANGE", func(list []string) (err error) {
			c.Hooks, err = c.Hooks.WithRules(list...)
			return err
		}),
		hooks("SORTIE_HOOK_PORTS", "443", "ports of public addresses that hooks may reach, with commas", func(list []string) (err error) {
			c.Hooks, err = c.Hooks.WithPorts(list...)
			return err
		}),
		hooks("SORTIE_ENGINE_ALLOW", "", "inference servers that pools may name although they are not public, as in SORTIE_HOOK_ALLOW", func(list []string) (err error) {
			c.Engines, err = c.Engines.WithRules(list...)
			return err
		}),
		setting.Bool(&c.MockEngine, "SORTIE_MOCK_ENGINE", "false", "whether pools can have the engine mock; sortie dev permits it"),
		setting.Func("SORTIE_MODEL_KEYS", "", "public Ed25519 keys of trusted models, 32 bytes in base64, with commas", func(text string) error {
			list, err := setting.ParseList(text)
			if err != nil {
				return err
			}
			c.ModelKeys = nil
			for _, each := range list {
				key, err := catalog.ParseKey(each)
				if err != nil {
					return err
				}
				c.ModelKeys = append(c.ModelKeys, key)
			}
			return nil
		}),
		setting.Func("SORTIE_METRIC_LABELS", "", "keys of labels by which metrics count runs, with commas; at most 100 values of each", func(text string) (err error) {
			if c.MetricLabels, err = setting.ParseList(text); err != nil {
				return err
			}
			for _, key := range c.MetricLabels {
				if !label.ValidKey(key) {
					return fmt.Errorf("malformed key %q of a label", limit.Cut(key, limit.FileName))
				}
			}
			return nil
		}),
		setting.URL(&c.PublicURL, "SORTIE_PUBLIC_URL", "", "the address for workers; empty is the one that Sortie listens on"),
		setting.URL(&c.SourceURL, "SOURCE_API_URL", "", "the entity API of exports; empty is the sample collection locally, and refuses exports in a deployment"),
	}, budgets(c)...)
}

// hooks returns a setting that parses a list and passes it to set.
func hooks(name, fallback, meaning string, set func(list []string) error) setting.Setting {
	return setting.Func(name, fallback, meaning, func(text string) error {
		list, err := setting.ParseList(text)
		if err != nil {
			return err
		}
		return set(list)
	})
}

// Settings returns the settings of this package, for documentation.
func Settings() []setting.Setting { return settings(&runs.Config{}) }

// Read reads the variables. An empty value counts as absent. The error joins all problems,
// each with its variable. Fields without a variable get fixed values: the pool "default",
// waits that fit into the time limit of a Lambda function, 16 concurrent items of a sweep, and
// the multiplier and jitter of retries. Budgets is nil if all budgets have their defaults.
func Read(lookup setting.Lookup) (runs.Config, error) {
	c := runs.Config{Pool: "default", LaunchWait: 2 * time.Second, ExitWait: 5 * time.Second, DestroyWait: 10 * time.Second, SweepWorkers: 16}
	c.Policy.Retry.Multiplier, c.Policy.Retry.Jitter = 2, 0.5
	given, err := setting.Read(lookup, settings(&c))
	if err == nil {
		err = validate(&c.Policy, given)
	}
	if err == nil && reflect.DeepEqual(*c.Budgets, budget.Standard()) {
		c.Budgets = nil
	}
	return c, err
}

// variables maps the fields of spec.Policy to the variables that set them.
var variables = map[string]string{
	"startTimeout": "SORTIE_START_TIMEOUT", "timeLimit": "SORTIE_TIME_LIMIT",
	"heartbeatInterval": heartbeatInterval, "heartbeatTimeout": heartbeatTimeout,
	"cancelGrace": "SORTIE_CANCEL_GRACE", "queueTimeout": "SORTIE_QUEUE_TIMEOUT",
	"outputRetention": "SORTIE_OUTPUT_RETENTION", "recordRetention": recordRetention,
	"retry.maxAttempts": "SORTIE_MAX_ATTEMPTS", "retry.maxFurtherStarts": "SORTIE_FURTHER_STARTS",
	"retry.initialDelay": "SORTIE_RETRY_DELAY", "retry.maxDelay": retryMaxDelay,
}

// validate adapts the defaults in p to the given variables. It then returns an error with all
// rules of spec.Policy that p violates, each with its variable.
func validate(p *spec.Policy, given map[string]bool) error {
	p.Fit(spec.Given{
		HeartbeatInterval: given[heartbeatInterval], HeartbeatTimeout: given[heartbeatTimeout],
		RecordRetention: given[recordRetention],
		InitialDelay:    true, MaxDelay: given[retryMaxDelay],
	})
	var problems []error
	for _, v := range p.Validate() {
		problems = append(problems, fmt.Errorf("%s: %s", variables[v.Field], v.Problem))
	}
	return errors.Join(problems...)
}
