package fly

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"time"

	"github.com/sortie-dev/sortie/shared/clock"
)

// Config is what a Runner needs. Apps, Token, Cluster, Clock and Log are
// required.
type Config struct {
	// Apps hold the machines. Changing their number or order sends a repeated
	// launch to another app: do it while nothing is being launched.
	Apps []string
	// Token is a Fly token that reaches all apps.
	Token string
	// CurrentToken, where it is set, is asked at each request instead, so that
	// the token may change while the process lives; whoever gives it keeps it
	// at hand.
	CurrentToken func(ctx context.Context) (string, error)
	// BaseURL is where the API is; empty is DefaultBaseURL. A path in it is
	// kept.
	BaseURL string
	// Cluster names this Sortie among those that share an app, 1 to 63
	// characters. It is the metadata "orchestrator".
	Cluster string
	// Regions are tried in order, where a spec names none and Fly has no room;
	// a spec's own region is tried first. Empty leaves the place to Fly.
	Regions []string
	// CreatesPerSecond paces creations in each app, Burst at once; Fly allows
	// one a second and three. 0 does not pace. A launch that would have to wait
	// longer than MaxPause is throttled at once; 0 is five seconds.
	CreatesPerSecond float64
	Burst            int
	MaxPause         time.Duration
	// CreateTimeout bounds one creation, so that there is time left to look for
	// its machine; 0 is DefaultCreateTimeout.
	CreateTimeout time.Duration
	// LookAgain is the pause before the second look for a machine whose
	// creation was not answered; 0 is two seconds (Fly's lists lag).
	LookAgain time.Duration
	// Logs: the API tells what a machine's program has written, beside the
	// machine as ".../logs". Fly's own does not; the local one does.
	Logs bool
	// Transport sends the requests; nil is one of the Runner's own.
	Transport http.RoundTripper

	Clock clock.Clock
	Log   *slog.Logger
}

// The defaults of Config.
const (
	DefaultBaseURL = "https://api.machines.dev"
	// DefaultCreateTimeout is above the slowest answers that were seen.
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
		c.Burst = 1
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
