package outside

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/stacktest"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Client calls the API of one deployment on behalf of one test.
type Client struct {
	T *testing.T
	// URL is the API's base URL, including the stage if the API has one.
	URL string
	// Token is sent with every call that has no Authorization header. Empty
	// sends none.
	Token string
	// Gateway names headers that a gateway adds to responses, such as "X-Amzn-Requestid". They
	// are not checked against the OpenAPI document.
	Gateway []string
	// Remapped names headers of Sortie that the gateway prefixes with "X-Amzn-Remapped-". They
	// are checked under their own names.
	Remapped []string
	// Timeout limits one call of Await; 0 means DefaultTimeout.
	Timeout time.Duration
}

// DefaultTimeout is much longer than any task of a test.
const DefaultTimeout = 5 * time.Minute

// Answer is a response with its whole body.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem decodes the body of an error response.
func (a Answer) Problem(t *testing.T) contract.Problem {
	t.Helper()
	return Decode[contract.Problem](t, a.Body)
}

// Call makes a request and reads the response. headers alternates names and values; an empty
// value removes the header. The default content type of a body is JSON. Call does not follow
// redirects.
func (c *Client) Call(method, path, body string, headers ...string) Answer {
	c.T.Helper()
	answer, err := c.do(c.T.Context(), method, path, body, headers...)
	if err != nil {
		c.T.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

func (c *Client) do(ctx context.Context, method, path, body string, headers ...string) (Answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{}, err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		request.Header.Del(headers[i])
		if headers[i+1] != "" {
			request.Header.Set(headers[i], headers[i+1])
		}
	}
	client := http.Client{
		Transport:     checkedTransport{c},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(request)
	if err != nil {
		return Answer{}, err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	return Answer{answer.StatusCode, answer.Header, text}, err
}

// Get decodes the response of a path. Any status other than 200 fails the test.
func Get[T any](c *Client, path string) T {
	c.T.Helper()
	answer := c.Call(http.MethodGet, path, "")
	if answer.Status != http.StatusOK {
		c.T.Fatalf("GET %s: got %d %s, want 200", path, answer.Status, answer.Body)
	}
	return Decode[T](c.T, answer.Body)
}

// Export submits an export in the format and returns its task id.
func (c *Client) Export(format string, request contract.ExportRequest) (task string) {
	c.T.Helper()
	answer := c.Call(http.MethodPost, "/export/"+format, string(Encode(c.T, request)))
	if answer.Status != http.StatusAccepted {
		c.T.Fatalf("POST /export/%s: got %d %s, want 202", format, answer.Status, answer.Body)
	}
	return Decode[contract.ExportAccepted](c.T, answer.Body).TaskID
}

// Await polls a task until enough returns true or the task has ended. If neither happens before
// the timeout, it fails the test with the last status.
func (c *Client) Await(task string, enough func(contract.Status) bool) contract.Status {
	c.T.Helper()
	ctx, cancel := context.WithTimeout(c.T.Context(), cmp.Or(c.Timeout, DefaultTimeout))
	defer cancel()
	var last Answer
	for wait := ""; ; wait = "?wait=5" {
		answer, err := c.do(ctx, http.MethodGet, "/status/"+task+wait, "")
		if err != nil {
			c.T.Fatalf("waiting for %s: %v; last status %s", task, err, last.Body)
		}
		if last = answer; answer.Status != http.StatusOK {
			c.T.Fatalf("GET /status: got %d %s, want 200", answer.Status, answer.Body)
		}
		status := Decode[contract.Status](c.T, answer.Body)
		if status.Status != contract.StatusProcessing || enough(status) {
			return status
		}
	}
}

// End waits for the end of a task.
func (c *Client) End(task string) contract.Status {
	c.T.Helper()
	return c.Await(task, func(contract.Status) bool { return false })
}

// Running waits until the task is Running.
func (c *Client) Running(task string) {
	c.T.Helper()
	c.Reach(task, "Running")
}

// Reach waits until the task is in the state.
func (c *Client) Reach(task, state string) {
	c.T.Helper()
	status := c.Await(task, func(s contract.Status) bool { return s.State == state })
	if status.State != state {
		c.T.Fatalf("got %+v, want %s", status, state)
	}
}

// Events returns all events of an ended task. It checks that their numbers have no gaps and
// that exactly one is terminal.
func (c *Client) Events(task string) []contract.TaskEvent {
	c.T.Helper()
	events := Get[contract.TaskEvents](c, "/v1/tasks/"+task+"/events?limit=1000").Events
	if err := stacktest.CheckEvents(events); err != nil {
		c.T.Errorf("%s: %v", task, err)
	}
	return events
}

// Faults returns the fault events of a task in order, as "type:CODE" separated by spaces.
func (c *Client) Faults(task string) string {
	c.T.Helper()
	var faults []string
	for _, e := range c.Events(task) {
		if e.Fault != nil {
			faults = append(faults, strings.TrimPrefix(e.Type, "job.")+":"+e.Fault.Code)
		}
	}
	return strings.Join(faults, " ")
}

// Decode decodes JSON or fails the test.
func Decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return v
}

// Encode encodes JSON or fails the test.
func Encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
