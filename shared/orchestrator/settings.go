package orchestrator

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/limit"
	"github.com/sortie-dev/sortie/shared/run"
)

// DefaultImage is the export contract's image.
const DefaultImage = "registry.fly.io/arke-mods-export-worker:latest"

// Setting is one variable of the configuration, as the README tells it.
type Setting struct {
	Name, Default, Meaning string
}

// setting reads one variable into the configuration.
type setting struct {
	Setting
	read func(c *Config, text string) error
}

// settings are the variables that every home of Sortie reads. What only one of
// them needs is read there.
func settings() []setting {
	policy := func(c *Config) *run.Policy { return &c.Policy }
	return []setting{
		text("SORTIE_EXPORT_IMAGE", DefaultImage, "the worker's image", func(c *Config) *string { return &c.Image }),
		text("SORTIE_REGION", "ord", "where machines are made; empty leaves it to the platform", func(c *Config) *string { return &c.Region }),
		number("SORTIE_MACHINE_CPUS", "1", "shared CPUs of a machine", 1, 16, func(c *Config) *int { return &c.CPUs }),
		memory(),
		number("SORTIE_MAX_MACHINES", "16", "machines at once; 0 is no limit", 0, 100_000, func(c *Config) *int { return &c.MaxMachines }),
		span("SORTIE_START_TIMEOUT", "10m", "until a machine must run", time.Second, limit.Duration, func(c *Config) *time.Duration { return &policy(c).StartTimeout }),
		span("SORTIE_TIME_LIMIT", "1h", "how long an attempt may run", 3*time.Second, limit.TimeLimit, func(c *Config) *time.Duration { return &policy(c).TimeLimit }),
		span("SORTIE_HEARTBEAT_INTERVAL", "30s", "how often a worker is asked to call", time.Second, limit.Duration, func(c *Config) *time.Duration { return &policy(c).HeartbeatInterval }),
		span("SORTIE_HEARTBEAT_TIMEOUT", "90s", "how long a worker may be silent; at least twice the interval", 2*time.Second, limit.Duration, func(c *Config) *time.Duration { return &policy(c).HeartbeatTimeout }),
		span("SORTIE_CANCEL_GRACE", "30s", "how long a worker may take to end when asked to", time.Second, limit.Duration, func(c *Config) *time.Duration { return &policy(c).CancelGrace }),
		span("SORTIE_QUEUE_TIMEOUT", "24h", "how long a run may wait for a machine's place", time.Second, limit.Duration, func(c *Config) *time.Duration { return &policy(c).QueueTimeout }),
		span("SORTIE_OUTPUT_RETENTION", "24h", "how long an output is kept", time.Second, limit.Retention, func(c *Config) *time.Duration { return &policy(c).OutputRetention }),
		span("SORTIE_DOWNLOAD_RETENTION", "1h", "how long it is kept once its last byte was sent", 0, limit.Retention, func(c *Config) *time.Duration { return &c.DownloadRetention }),
		span("SORTIE_RECORD_RETENTION", "168h", "how long a task is known after its end; not shorter than the output's", time.Second, limit.Retention, func(c *Config) *time.Duration { return &policy(c).RecordRetention }),
		number("SORTIE_MAX_ATTEMPTS", "3", "tries at a run whose worker is lost", 1, 100, func(c *Config) *int { return &policy(c).Retry.MaxAttempts }),
		number("SORTIE_FURTHER_STARTS", "3", "further tries at a machine that never started", 0, 100, func(c *Config) *int { return &policy(c).Retry.MaxFurtherStarts }),
		span("SORTIE_RETRY_DELAY", "2s", "before the second try; doubled for each further one", time.Second, limit.Duration, func(c *Config) *time.Duration { return &policy(c).Retry.InitialDelay }),
		span("SORTIE_RETRY_MAX_DELAY", "60s", "the longest such delay", time.Second, limit.Duration, func(c *Config) *time.Duration { return &policy(c).Retry.MaxDelay }),
		span("SORTIE_TOKEN_TTL", "1h", "how long a worker's token is good; renewed by heartbeats, and longer where the start limit asks for it", time.Minute, limit.TokenTTL, func(c *Config) *time.Duration { return &c.TokenTTL }),
		size("SORTIE_REDIRECT_OVER", "0", "bytes above which a download is redirected to the bucket; 0 never does", func(c *Config) *int64 { return &c.RedirectOver }),
		span("SORTIE_PRESIGN_FOR", "15m", "how long such a redirect is good", time.Second, 7*24*time.Hour, func(c *Config) *time.Duration { return &c.PresignFor }),
		address("SORTIE_PUBLIC_URL", "where workers reach this Sortie; empty is the address it listens on", func(c *Config) *string { return &c.PublicURL }),
		address("SOURCE_API_URL", "the entity API that workers read; empty locally is the sample collection", func(c *Config) *string { return &c.SourceURL }),
	}
}

// Settings lists the variables, for documentation.
func Settings() []Setting {
	var list []Setting
	for _, s := range settings() {
		list = append(list, s.Setting)
	}
	return list
}

// ConfigFrom reads the configuration. lookup is os.LookupEnv or its like; an
// empty value is an absent one. The error joins every problem there is, each
// naming its variable. What is no setting has its fixed value: the pool
// "default", waits that fit a Lambda's time limit, 16 deletions at once.
func ConfigFrom(lookup func(string) (string, bool)) (Config, error) {
	c := Config{Pool: "default", LaunchWait: 2 * time.Second, ExitWait: 5 * time.Second, DestroyWait: 10 * time.Second, Deletions: 16}
	c.Policy.Retry.Multiplier, c.Policy.Retry.Jitter = 2, 0.5
	var problems []error
	given := map[string]bool{}
	for _, s := range settings() {
		value, ok := lookup(s.Name)
		if given[s.Name] = ok && value != ""; !given[s.Name] {
			value = s.Default
		}
		if err := s.read(&c, value); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.Name, err))
		}
	}
	if len(problems) == 0 {
		problems = c.validate(given)
	}
	return c, errors.Join(problems...)
}

// policySettings maps the fields of run.Policy to settings.
var policySettings = map[string]string{
	"startTimeout": "SORTIE_START_TIMEOUT", "timeLimit": "SORTIE_TIME_LIMIT",
	"heartbeatInterval": "SORTIE_HEARTBEAT_INTERVAL", "heartbeatTimeout": "SORTIE_HEARTBEAT_TIMEOUT",
	"cancelGrace": "SORTIE_CANCEL_GRACE", "queueTimeout": "SORTIE_QUEUE_TIMEOUT",
	"outputRetention": "SORTIE_OUTPUT_RETENTION", "recordRetention": "SORTIE_RECORD_RETENTION",
	"retry.maxAttempts": "SORTIE_MAX_ATTEMPTS", "retry.maxFurtherStarts": "SORTIE_FURTHER_STARTS",
	"retry.initialDelay": "SORTIE_RETRY_DELAY", "retry.maxDelay": "SORTIE_RETRY_MAX_DELAY",
}

// validate adapts the defaults to what is given, and returns the rules that the
// policy breaks.
func (c *Config) validate(given map[string]bool) (problems []error) {
	c.Policy.Fit(run.Given{
		HeartbeatInterval: given["SORTIE_HEARTBEAT_INTERVAL"], HeartbeatTimeout: given["SORTIE_HEARTBEAT_TIMEOUT"],
		RecordRetention: given["SORTIE_RECORD_RETENTION"],
		InitialDelay:    true, MaxDelay: given["SORTIE_RETRY_MAX_DELAY"],
	})
	for _, v := range c.Policy.Validate() {
		problems = append(problems, fmt.Errorf("%s: %s", policySettings[v.Field], v.Problem))
	}
	return problems
}

func text(name, fallback, meaning string, at func(*Config) *string) setting {
	return setting{Setting{name, fallback, meaning}, func(c *Config, value string) error {
		*at(c) = value
		return nil
	}}
}

func address(name, meaning string, at func(*Config) *string) setting {
	return setting{Setting{name, "", meaning}, func(c *Config, value string) error {
		u, err := url.Parse(value)
		if value != "" && (err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			u.RawQuery != "" || u.Fragment != "" || u.User != nil) {
			return errors.New("it has to be an http or https URL without user, query and fragment, such as https://sortie.example.org")
		}
		*at(c) = strings.TrimRight(value, "/")
		return nil
	}}
}

func number(name, fallback, meaning string, least, most int, at func(*Config) *int) setting {
	return setting{Setting{name, fallback, meaning}, func(c *Config, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil || n < least || n > most {
			return fmt.Errorf("%q has to be a whole number from %d to %d", value, least, most)
		}
		*at(c) = n
		return nil
	}}
}

func memory() setting {
	s := number("SORTIE_MACHINE_MEMORY", "256", "MB of a machine, a multiple of 256", 256, 131_072, func(c *Config) *int { return &c.MemoryMB })
	inRange := s.read
	s.read = func(c *Config, value string) error {
		if err := inRange(c, value); err != nil {
			return err
		}
		if c.MemoryMB%256 != 0 {
			return fmt.Errorf("%q has to be a multiple of 256", value)
		}
		return nil
	}
	return s
}

func size(name, fallback, meaning string, at func(*Config) *int64) setting {
	return setting{Setting{name, fallback, meaning}, func(c *Config, value string) error {
		n, err := strconv.ParseInt(value, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%q has to be a number of bytes", value)
		}
		*at(c) = n
		return nil
	}}
}

func span(name, fallback, meaning string, least, most time.Duration, at func(*Config) *time.Duration) setting {
	return setting{Setting{name, fallback, meaning}, func(c *Config, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil || d%time.Second != 0 || d < least || d > most {
			return fmt.Errorf("%q has to be a duration of whole seconds from %s to %s, such as 90s", value, least, most)
		}
		*at(c) = d
		return nil
	}}
}
