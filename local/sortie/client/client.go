package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/sortie-dev/sortie/shared/base/clock"
	sdk "github.com/sortie-dev/sortie/shared/sdk/go/client"
)

// Config configures a Client. URL and Clock are required.
type Config struct {
	// URL is the server's address, such as http://127.0.0.1:8080. Without a scheme, http
	// applies. Its path is a prefix of the API's paths.
	URL string
	// Token is sent as a bearer token unless it is empty.
	Token string
	// Transport sends the requests; nil means a copy of http.DefaultTransport.
	Transport http.RoundTripper
	Clock     clock.Clock
	// OnSilence is called while a call waits for a server of this machine that hangs. WithRetry
	// replaces it, unless its own function is nil.
	OnSilence func(error)
	// Agent is the User-Agent header; empty means that of the Go client.
	Agent string
}

// Client calls one server. It is safe for concurrent use.
type Client struct {
	// api sends each request once; retry repeats it.
	api     *sdk.Client
	base    *url.URL
	agent   string
	http    *http.Client
	clock   clock.Clock
	outage  time.Duration
	onRetry func(error)
	// onSilence is called if a server of this machine hangs, unless onRetry is.
	onSilence func(error)
	// onContact is called when the server answers with success.
	onContact func()
}

// New checks the configuration and returns a Client. It sends nothing.
func New(c Config) (*Client, error) {
	base, err := parseURL(c.URL)
	if err != nil {
		return nil, err
	}
	transport := c.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // documented by net/http
		own.DisableCompression = true                          // lengths and ranges refer to the file
		transport = own
	}
	own := &http.Client{
		Transport: transport,
		// Open follows redirects itself.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	api, err := sdk.New(sdk.Config{URL: base.String(), Token: c.Token, HTTP: own, Retries: -1, UserAgent: c.Agent, Clock: c.Clock})
	if err != nil {
		return nil, err
	}
	return &Client{api: api, base: base, agent: c.Agent, clock: c.Clock, onSilence: c.OnSilence, http: own}, nil
}

func parseURL(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	base, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("malformed server URL, want http://HOST:PORT")
	case base.User != nil:
		return nil, errors.New("the server URL contains a user or a password, want a token in SORTIE_TOKEN")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, fmt.Errorf("malformed server URL %q, want http://HOST:PORT", base)
	case base.RawQuery != "" || base.Fragment != "":
		return nil, fmt.Errorf("the server URL %q has a query or a fragment, want http://HOST:PORT", base)
	}
	base.Path = strings.TrimRight(base.Path, "/")
	return base, nil
}

// WithRetry returns a client that retries temporary failures of calls that are safe to repeat,
// for at most outage. It calls onRetry, unless nil, with the error before each retry, and while
// a call waits for a server that hangs; the latter from another goroutine.
func (c *Client) WithRetry(outage time.Duration, onRetry func(error)) *Client {
	retrying := *c
	retrying.outage, retrying.onRetry = outage, onRetry
	return &retrying
}

// WithContact returns a client that calls onContact when the server answers with success.
func (c *Client) WithContact(onContact func()) *Client {
	noted := *c
	noted.onContact = onContact
	return &noted
}

func (c *Client) contacted() {
	if c.onContact != nil {
		c.onContact()
	}
}
