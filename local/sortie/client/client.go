package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Clock times pauses.
type Clock interface {
	Now() time.Time
	// NewTimer sends the time once, when d has passed. stop gives it up.
	NewTimer(d time.Duration) (fired <-chan time.Time, stop func())
}

// Config is what a Client needs. URL and Clock are required.
type Config struct {
	// URL is where the server is, such as http://127.0.0.1:8080; a path is kept
	// in front of the API's own.
	URL string
	// Token is sent as a bearer token; empty sends none.
	Token string
	// Transport makes the calls; nil is one of the client's own.
	Transport http.RoundTripper
	Clock     Clock
	// Agent names the caller in User-Agent.
	Agent string
}

// Client calls one server. It is safe for use by many goroutines.
type Client struct {
	base     *url.URL
	token    string
	agent    string
	http     *http.Client
	clock    Clock
	patience time.Duration
	trouble  func(error)
}

// New checks the configuration and makes a Client; nothing is sent.
func New(c Config) (*Client, error) {
	base, err := parseURL(c.URL)
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(c.Token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.New("the token has a character that no header can carry")
	}
	transport := c.Transport
	if transport == nil {
		own := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert // the standard library's own
		own.DisableCompression = true                          // lengths and ranges are those of the file
		transport = own
	}
	return &Client{
		base: base, token: c.Token, agent: c.Agent, clock: c.Clock,
		http: &http.Client{
			Transport: transport,
			// Redirects are followed by hand: see Open.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}, nil
}

func parseURL(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, errors.New("the server's URL cannot be read")
	case base.Scheme != "http" && base.Scheme != "https", base.Host == "":
		return nil, fmt.Errorf("the server's URL %q is not of the form http://host:port", base.Redacted())
	case base.User != nil:
		return nil, errors.New("the server's URL carries a password; give a token instead")
	case base.RawQuery != "" || base.Fragment != "":
		return nil, errors.New("the server's URL has a query or a fragment")
	}
	base.Path = strings.TrimRight(base.Path, "/")
	return base, nil
}

// Patient gives a client that bears an outage for this long in each call that
// is safe to repeat, and tells of every failure that it bears; trouble may be
// nil.
func (c *Client) Patient(outage time.Duration, trouble func(error)) *Client {
	patient := *c
	patient.patience, patient.trouble = outage, trouble
	return &patient
}
