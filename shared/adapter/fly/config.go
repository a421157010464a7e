package fly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Config configures a Runner. Apps, Token, Cluster, Clock and Log are required.
type Config struct {
	// Apps are the apps in which machines are created. A machine's name selects its app from the
	// list, so a repeated launch finds the machine only if the list is unchanged. Change it only
	// while no run starts.
	Apps []string
	// Token is a Fly token for all apps.
	Token string
	// CurrentToken, if set, replaces Token. It is called for each request, so
	// that the token can change while the process runs, and must return
	// quickly.
	CurrentToken func(ctx context.Context) (string, error)
	// BaseURL is the URL of the API, with an optional path; empty is
	// DefaultBaseURL.
	BaseURL string
	// Cluster distinguishes the Sortie instances that share an app, 1 to 63 characters. It is
	// the metadata "orchestrator".
	Cluster string
	// Regions are tried in order if Fly has no capacity, after the region of the spec. If
	// empty, Fly chooses.
	Regions []string
	// CreatesPerSecond limits creations per app, with bursts of Burst. Fly allows one a second
	// in bursts of three; a Burst of 0 is three. CreatesPerSecond 0 means that the API has no
	// limit. Callers pace launches by StartLimits, which returns both. The Runner itself paces
	// its calls too, because a launch that tries several regions makes more than one. A call
	// that would wait longer than MaxPause is throttled at once; 0 is five seconds.
	CreatesPerSecond float64
	Burst            int
	MaxPause         time.Duration
	// CreateTimeout limits one creation, so that time remains to search for its machine; 0 is
	// DefaultCreateTimeout.
	CreateTimeout time.Duration
	// LookAgain is the pause before the second search for a machine whose creation got no
	// response; 0 is two seconds. Fly's lists lag.
	LookAgain time.Duration
	// Logs is true if the API serves the output of a machine under ".../logs".
	// The local API does, Fly's does not.
	Logs bool
	// Transport sends the requests; nil is the Runner's own.
	Transport http.RoundTripper

	Clock clock.Clock
	Log   *slog.Logger
}

// Fly's documented limit of creations in one app.
const (
	DocumentedRate  = 1
	DocumentedBurst = 3
)

// Defaults of Config.
const (
	DefaultBaseURL = "https://api.machines.dev"
	// DefaultCreateTimeout is longer than the slowest responses observed.
	DefaultCreateTimeout = 45 * time.Second
)

func (c Config) complete() (Config, *url.URL, error) {
	var problems []error
	missing := func(is bool, what string) {
		if is {
			problems = append(problems, errors.New(what+" is missing"))
		}
	}
	missing(len(c.Apps) == 0, "an app")
	missing(c.Token == "" && c.CurrentToken == nil, "the token")
	missing(c.Clock == nil, "the clock")
	missing(c.Log == nil, "the logger")
	for _, app := range c.Apps {
		missing(app == "", "an app's name")
	}
	if err := checkMetadata("cluster", c.Cluster); err != nil || c.Cluster == "" || len(c.Cluster) > 63 {
		problems = append(problems, errors.New("the cluster is not 1 to 63 printable ASCII characters"))
	}
	if c.CreatesPerSecond < 0 || c.Burst < 0 {
		problems = append(problems, errors.New("a negative pace"))
	}
	if c.BaseURL == "" {
		c.BaseURL = DefaultBaseURL
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil || base.Host == "" || (base.Scheme != "http" && base.Scheme != "https") || base.RawQuery != "" {
		problems = append(problems, errors.New("the base URL is not one of http or https"))
	}
	if len(problems) > 0 {
		return Config{}, nil, fmt.Errorf("cannot use Fly Machines: %w", errors.Join(problems...))
	}
	if c.Burst == 0 {
		c.Burst = DocumentedBurst
	}
	orElse := func(d *time.Duration, other time.Duration) {
		if *d <= 0 {
			*d = other
		}
	}
	orElse(&c.MaxPause, 5*time.Second)
	orElse(&c.CreateTimeout, DefaultCreateTimeout)
	orElse(&c.LookAgain, 2*time.Second)
	return c, base, nil
}
