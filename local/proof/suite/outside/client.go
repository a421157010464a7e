package outside

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/twin/stacktest"
	"github.com/sortie-dev/sortie/shared/contract"
)

// Client calls the API of one Sortie on behalf of one test.
type Client struct {
	T *testing.T
	// URL is the API's, with the stage in its path where it has one.
	URL string
	// Token is sent with every call that has no Authorization of its own;
	// empty sends none.
	Token string
	// Gateway names the headers that something before Sortie adds to answers,
	// such as "X-Amzn-Requestid"; they are not held to the document.
	Gateway []string
	// Patience is how long a task may take to do what is awaited.
	Patience time.Duration
}

// patience is the default of Client.Patience: much longer than anything takes.
const patience = 5 * time.Minute

// Answer is one of the API's, read to its end.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Problem reads the body of a refusal.
func (a Answer) Problem(t *testing.T) contract.Problem {
	t.Helper()
	return Decode[contract.Problem](t, a.Body)
}

// Call makes a request and reads the answer; headers come by turns of name and
// value, and an empty value takes a header away. A body is sent as JSON where
// no header says otherwise. Redirects are not followed.
func (c *Client) Call(method, path, body string, headers ...string) Answer {
	c.T.Helper()
	answer, err := c.try(c.T.Context(), method, path, body, headers...)
	if err != nil {
		c.T.Fatalf("%s %s: %v", method, path, err)
	}
	return answer
}

func (c *Client) try(ctx context.Context, method, path, body string, headers ...string) (Answer, error) {
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
		Transport:     held{c},
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

// Get reads what a path has; anything but 200 ends the test.
func Get[T any](c *Client, path string) T {
	c.T.Helper()
	answer := c.Call(http.MethodGet, path, "")
	if answer.Status != http.StatusOK {
		c.T.Fatalf("GET %s: %d %s", path, answer.Status, answer.Body)
	}
	return Decode[T](c.T, answer.Body)
}

// Export asks for an export in the format, and gives its task.
func (c *Client) Export(format string, request contract.ExportRequest) (task string) {
	c.T.Helper()
	answer := c.Call(http.MethodPost, "/export/"+format, string(Encode(c.T, request)))
	if answer.Status != http.StatusAccepted {
		c.T.Fatalf("POST /export/%s: %d %s", format, answer.Status, answer.Body)
	}
	return Decode[contract.ExportAccepted](c.T, answer.Body).TaskID
}

// Await follows a task until enough says so, or it has ended. A task that does
// neither in time ends the test, and shows how it stood.
func (c *Client) Await(task string, enough func(contract.Status) bool) contract.Status {
	c.T.Helper()
	limit := c.Patience
	if limit == 0 {
		limit = patience
	}
	ctx, cancel := context.WithTimeout(c.T.Context(), limit)
	defer cancel()
	var last Answer
	for wait := ""; ; wait = "?wait=5" {
		answer, err := c.try(ctx, http.MethodGet, "/status/"+task+wait, "")
		if err != nil {
			c.T.Fatalf("waiting for %s: %v; it was %s", task, err, last.Body)
		}
		if last = answer; answer.Status != http.StatusOK {
			c.T.Fatalf("GET /status: %d %s", answer.Status, answer.Body)
		}
		status := Decode[contract.Status](c.T, answer.Body)
		if status.Status != contract.StatusProcessing || enough(status) {
			return status
		}
	}
}

// End follows a task to its end.
func (c *Client) End(task string) contract.Status {
	c.T.Helper()
	return c.Await(task, func(contract.Status) bool { return false })
}

// Running waits until the task's machine runs.
func (c *Client) Running(task string) {
	c.T.Helper()
	status := c.Await(task, func(s contract.Status) bool { return s.State == "Running" })
	if status.State != "Running" {
		c.T.Fatalf("it does not run: %+v", status)
	}
}

// Events reads all events of a task that has ended and holds them to be without
// gaps, with one end.
func (c *Client) Events(task string) []contract.TaskEvent {
	c.T.Helper()
	events := Get[contract.TaskEvents](c, "/v1/tasks/"+task+"/events?limit=1000").Events
	if err := stacktest.CheckEvents(events); err != nil {
		c.T.Errorf("%s: %v", task, err)
	}
	return events
}

// Faults are the events of a task that carry a fault, in order: each
// "type:CODE", with spaces between.
func (c *Client) Faults(task string) string {
	c.T.Helper()
	var told []string
	for _, e := range c.Events(task) {
		if e.Fault != nil {
			told = append(told, strings.TrimPrefix(e.Type, "job.")+":"+e.Fault.Code)
		}
	}
	return strings.Join(told, " ")
}

// Decode reads JSON, or ends the test.
func Decode[T any](t *testing.T, text []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatalf("%v in %.500s", err, text)
	}
	return v
}

// Encode writes JSON, or ends the test.
func Encode(t *testing.T, v any) []byte {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
