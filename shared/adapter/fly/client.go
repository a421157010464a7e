package fly

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// client calls the Machines API. It reads responses completely, except those of open.
type client struct {
	http *http.Client
	// sleep waits before a call is repeated. It returns false if the context ends first.
	sleep func(ctx context.Context, d time.Duration) bool
}

// A call is repeated if the response of a proxy shows that it did not reach the API.
// repeatAfter is the first pause, which doubles each time.
const (
	repeats     = 3
	repeatAfter = 100 * time.Millisecond
)

// refusalLimit limits how much of a refusal is read. answerLimit limits a response about
// machines, which repeats their configurations. Both are in bytes.
const (
	refusalLimit = 4 << 10
	answerLimit  = 64 << 20
)

// apiError is an error response of the API.
type apiError struct {
	status int
	// text and code are those of the response; both may be empty.
	text, code string
}

// Error returns the text of the response.
func (e *apiError) Error() string { return e.text }

// refusedBy returns the error for an error response.
func refusedBy(answer *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(answer.Body, refusalLimit))
	if err != nil {
		body = nil
	}
	e := &apiError{status: answer.StatusCode}
	var said struct {
		Error   string `json:"error"`
		Message string `json:"message"`
		Status  string `json:"status"`
	}
	switch err := json.Unmarshal(body, &said); {
	case err != nil:
		e.text = fmt.Sprintf("status %d: %s", answer.StatusCode, body)
	case said.Message != "":
		e.text, e.code = said.Message, said.Status
	default:
		e.text, e.code = said.Error, said.Status
	}
	return e
}

func machinesOf(app string) string { return "/v1/apps/" + url.PathEscape(app) + "/machines" }

func machineOf(app, id string) string { return machinesOf(app) + "/" + url.PathEscape(id) }

// Launch creates a machine.
func (c client) Launch(ctx context.Context, app string, in machineInput) (*machine, error) {
	return read[machine](c.repeat(ctx, http.MethodPost, machinesOf(app), in))
}

// Update changes a machine, and starts it unless the input skips that. It is not repeated.
func (c client) Update(ctx context.Context, app, id string, in machineInput) (*machine, error) {
	return read[machine](c.open(ctx, http.MethodPost, machineOf(app, id), in))
}

// Get returns a machine.
func (c client) Get(ctx context.Context, app, id string) (*machine, error) {
	return read[machine](c.repeat(ctx, http.MethodGet, machineOf(app, id), nil))
}

// List returns the machines that the query selects.
func (c client) List(ctx context.Context, app, query string) ([]*machine, error) {
	found, err := read[[]*machine](c.repeat(ctx, http.MethodGet, machinesOf(app)+"?"+query, nil))
	if err != nil {
		return nil, err
	}
	return *found, nil
}

// Wait waits until the machine is in one of the states. The API accepts whole seconds.
func (c client) Wait(ctx context.Context, app, id string, states []string, limit time.Duration) error {
	query := url.Values{"state": states, "timeout": {strconv.Itoa(int(limit.Seconds()))}}
	return done(c.repeat(ctx, http.MethodGet, machineOf(app, id)+"/wait?"+query.Encode(), nil))
}

// Stop stops a machine.
func (c client) Stop(ctx context.Context, app, id string, in stopConfig) error {
	return done(c.repeat(ctx, http.MethodPost, machineOf(app, id)+"/stop", in))
}

// Destroy destroys a machine, even one that runs.
func (c client) Destroy(ctx context.Context, app, id string) error {
	return done(c.repeat(ctx, http.MethodDelete, machineOf(app, id)+"?kill=true", nil))
}

// repeat is like open, for a call that can be applied twice. It repeats the call after the
// error of a proxy.
func (c client) repeat(ctx context.Context, method, path string, in any) (*http.Response, error) {
	for try := 0; ; try++ {
		answer, err := c.open(ctx, method, path, in)
		var refusal *apiError
		if try == repeats || !errors.As(err, &refusal) || refusal.status != http.StatusBadGateway && refusal.status != http.StatusServiceUnavailable {
			return answer, err
		}
		if !c.sleep(ctx, repeatAfter<<try) {
			return nil, err
		}
	}
}

// open makes a call and returns its response, which the caller must close. It returns an
// *apiError for an error response.
func (c client) open(ctx context.Context, method, path string, in any) (*http.Response, error) {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return nil, fmt.Errorf("cannot encode the request: %w", err)
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, "https://fly"+path, body) // the transport sets the host
	if err != nil {
		return nil, err
	}
	request.Header.Set("User-Agent", "sortie")
	if in != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode > 299 {
		defer answer.Body.Close()
		return nil, refusedBy(answer)
	}
	return answer, nil
}

// read decodes the response of a call.
func read[T any](answer *http.Response, err error) (*T, error) {
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var found T
	if err := json.NewDecoder(io.LimitReader(answer.Body, answerLimit)).Decode(&found); err != nil {
		return nil, fmt.Errorf("malformed answer: %w", err)
	}
	return &found, nil
}

// done closes the response of a call.
func done(answer *http.Response, err error) error {
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, io.LimitReader(answer.Body, refusalLimit))
	return errors.Join(err, answer.Body.Close())
}

// Authorization returns the header for a Fly token: one of a user, or several separated by
// commas. It prefers macaroons.
func Authorization(token string) string {
	token = strings.TrimSpace(token)
	for scheme, rest, found := strings.Cut(token, " "); found && (strings.EqualFold(scheme, "Bearer") || strings.EqualFold(scheme, "FlyV1")); scheme, rest, found = strings.Cut(token, " ") {
		token = strings.TrimSpace(rest)
	}
	var macaroons, others []string
	for part := range strings.SplitSeq(token, ",") {
		part = strings.TrimSpace(part)
		switch prefix, _, _ := strings.Cut(part, "_"); prefix {
		case "fm1r", "fm1a", "fm2":
			macaroons = append(macaroons, part)
		default:
			others = append(others, part)
		}
	}
	if len(macaroons) > 0 {
		return "FlyV1 " + strings.Join(macaroons, ",")
	}
	return "Bearer " + strings.Join(others, ",")
}
