package orchestrator

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/run"
)

// DefaultImage is the export contract's image.
const DefaultImage = "registry.fly.io/arke-mods-export-worker:latest"

// The longest that some limits may be.
const (
	timeLimitMost = 14 * 24 * time.Hour
	retentionMost = 365 * 24 * time.Hour
	anyLimitMost  = 30 * 24 * time.Hour
	// tokenTTLMost is the limit of WC-2.4.
	tokenTTLMost = 2 * time.Hour
)

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
		span("SORTIE_START_TIMEOUT", "10m", "until a machine must run", time.Second, anyLimitMost, func(c *Config) *time.Duration { return &policy(c).StartTimeout }),
		span("SORTIE_TIME_LIMIT", "1h", "how long an attempt may run", 3*time.Second, timeLimitMost, func(c *Config) *time.Duration { return &policy(c).TimeLimit }),
		span("SORTIE_HEARTBEAT_INTERVAL", "30s", "how often a worker is asked to call", time.Second, anyLimitMost, func(c *Config) *time.Duration { return &policy(c).HeartbeatInterval }),
		span("SORTIE_HEARTBEAT_TIMEOUT", "90s", "how long a worker may be silent; at least twice the interval", 2*time.Second, anyLimitMost, func(c *Config) *time.Duration { return &policy(c).HeartbeatTimeout }),
		span("SORTIE_CANCEL_GRACE", "30s", "how long a worker may take to end when asked to", time.Second, anyLimitMost, func(c *Config) *time.Duration { return &policy(c).CancelGrace }),
		span("SORTIE_QUEUE_TIMEOUT", "24h", "how long a run may wait for a machine's place", time.Second, anyLimitMost, func(c *Config) *time.Duration { return &policy(c).QueueTimeout }),
		span("SORTIE_OUTPUT_RETENTION", "24h", "how long an output is kept", time.Second, retentionMost, func(c *Config) *time.Duration { return &policy(c).OutputRetention }),
		span("SORTIE_DOWNLOAD_RETENTION", "1h", "how long it is kept once its last byte was sent", 0, retentionMost, func(c *Config) *time.Duration { return &c.DownloadRetention }),
		span("SORTIE_RECORD_RETENTION", "168h", "how long a task is known after its end; not shorter than the output's", time.Second, retentionMost, func(c *Config) *time.Duration { return &policy(c).RecordRetention }),
		number("SORTIE_MAX_ATTEMPTS", "3", "tries at a run whose worker is lost", 1, 100, func(c *Config) *int { return &policy(c).Retry.MaxAttempts }),
		number("SORTIE_FURTHER_STARTS", "3", "further tries at a machine that never started", 0, 100, func(c *Config) *int { return &policy(c).Retry.MaxFurtherStarts }),
		span("SORTIE_RETRY_DELAY", "2s", "before the second try; doubled for each further one", time.Second, anyLimitMost, func(c *Config) *time.Duration { return &policy(c).Retry.InitialDelay }),
		span("SORTIE_RETRY_MAX_DELAY", "60s", "the longest such delay", time.Second, anyLimitMost, func(c *Config) *time.Duration { return &policy(c).Retry.MaxDelay }),
		span("SORTIE_TOKEN_TTL", "1h", "how long a worker's token is good; renewed by heartbeats, and longer where the start limit asks for it", time.Minute, tokenTTLMost, func(c *Config) *time.Duration { return &c.TokenTTL }),
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
		c.fit(given)
		problems = c.contradictions()
	}
	return c, errors.Join(problems...)
}

// fit makes the defaults of what was not given agree with what was.
func (c *Config) fit(given map[string]bool) {
	p := &c.Policy
	fitHeartbeats(p, given["SORTIE_HEARTBEAT_INTERVAL"], given["SORTIE_HEARTBEAT_TIMEOUT"])
	if !given["SORTIE_RECORD_RETENTION"] {
		p.RecordRetention = max(p.RecordRetention, p.OutputRetention)
	}
	if !given["SORTIE_RETRY_MAX_DELAY"] {
		p.Retry.MaxDelay = max(p.Retry.MaxDelay, p.Retry.InitialDelay)
	}
}

// contradictions are problems of settings that are well-formed by themselves.
func (c Config) contradictions() []error {
	var found []error
	p := c.Policy
	if p.HeartbeatTimeout < 2*p.HeartbeatInterval {
		found = append(found, fmt.Errorf("SORTIE_HEARTBEAT_TIMEOUT: %s is less than twice SORTIE_HEARTBEAT_INTERVAL (%s)", p.HeartbeatTimeout, p.HeartbeatInterval))
	}
	if p.HeartbeatTimeout >= p.TimeLimit {
		found = append(found, fmt.Errorf("SORTIE_HEARTBEAT_TIMEOUT: %s is not less than SORTIE_TIME_LIMIT (%s)", p.HeartbeatTimeout, p.TimeLimit))
	}
	if p.StartTimeout > tokenTTLMost {
		found = append(found, fmt.Errorf("SORTIE_START_TIMEOUT: %s is more than the longest life of a worker's token (%s)", p.StartTimeout, tokenTTLMost))
	}
	if p.RecordRetention < p.OutputRetention {
		found = append(found, fmt.Errorf("SORTIE_RECORD_RETENTION: %s is less than SORTIE_OUTPUT_RETENTION (%s)", p.RecordRetention, p.OutputRetention))
	}
	if p.Retry.MaxDelay < p.Retry.InitialDelay {
		found = append(found, fmt.Errorf("SORTIE_RETRY_MAX_DELAY: %s is less than SORTIE_RETRY_DELAY (%s)", p.Retry.MaxDelay, p.Retry.InitialDelay))
	}
	return found
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
