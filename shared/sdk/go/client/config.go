package client

import (
	"cmp"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// Version is the version of the client. It is sent as a part of User-Agent.
const Version = "0.1.0"

// DefaultURL is the address of a local server.
const DefaultURL = "http://127.0.0.1:8080"

const (
	defaultTimeout = 30 * time.Second
	defaultRetries = 2
)

// Config configures a Client. The zero value is a client of a local server.
type Config struct {
	// URL is the address of the server; empty means DefaultURL. Its path is a prefix of the
	// API's paths.
	URL string
	// Token is sent as a bearer token unless it is empty. It is not part of printed Configs.
	Token string
	// HTTP sends the requests; nil means a client of its own. Its redirect policy is not used:
	// downloads follow redirects without the token.
	HTTP *http.Client
	// Timeout limits each request with its answer; 0 means 30 s. Streams have a limit between
	// two messages instead.
	Timeout time.Duration
	// Retries is how often a request is sent again; 0 means 2, a negative number none.
	Retries int
	// UserAgent is the User-Agent header; empty means "sortie-go/" and Version.
	UserAgent string
	// Clock is for tests; nil means the clock of the host.
	Clock clock.Clock
}

// String returns the address without a password.
func (c Config) String() string {
	base, err := url.Parse(cmp.Or(c.URL, DefaultURL))
	if err != nil {
		return "client of a malformed URL"
	}
	return "client of " + base.Redacted()
}

// GoString implements fmt.GoStringer like String.
func (c Config) GoString() string { return c.String() }

// MarshalText implements encoding.TextMarshaler like String.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// LogValue implements slog.LogValuer like String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// FromEnv returns the configuration of SORTIE_URL and SORTIE_TOKEN. lookup is os.Getenv.
func FromEnv(lookup func(name string) string) Config {
	return Config{URL: lookup("SORTIE_URL"), Token: lookup("SORTIE_TOKEN")}
}

// New checks the configuration and returns a client. It sends nothing.
func New(c Config) (*Client, error) {
	if c.URL == "" {
		c.URL = DefaultURL
	}
	base, err := url.Parse(c.URL)
	switch {
	case err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "":
		return nil, errors.New("malformed URL, want http://HOST:PORT")
	case base.User != nil || base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the URL has a user, a query or a fragment, want http://HOST:PORT")
	case strings.ContainsFunc(c.UserAgent, func(r rune) bool { return r < ' ' || r > '~' }):
		return nil, errors.New("the user agent has a character that is not allowed in a header")
	case strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return nil, errors.New("the token has a character that is not allowed in a header")
	}
	t := &transport{base: strings.TrimRight(base.String(), "/"), token: c.Token, agent: c.UserAgent, timeout: c.Timeout, retries: c.Retries, clock: c.Clock}
	if t.agent == "" {
		t.agent = "sortie-go/" + Version
	}
	if t.timeout <= 0 {
		t.timeout = defaultTimeout
	}
	if t.retries == 0 {
		t.retries = defaultRetries
	}
	if t.clock == nil {
		t.clock = clock.System{}
	}
	own := http.Client{}
	if c.HTTP != nil {
		own = *c.HTTP
	}
	own.Timeout = 0 // the context of each request has the limit; streams have none
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	t.http = &own
	return newClient(t), nil
}
