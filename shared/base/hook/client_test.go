package hook_test

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sortie-dev/sortie/shared/base/hook"
	"github.com/sortie-dev/sortie/shared/base/hook/guard"
	"github.com/sortie-dev/sortie/shared/base/limit"
)

func status(code int, body string) func(int, http.ResponseWriter, *http.Request) {
	return func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// TestAnswersAreClassified checks the verdict for each status (RL-4.15).
func TestAnswersAreClassified(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		status  int
		body    string
		verdict hook.Verdict
		detail  string
		tries   int
	}{
		{200, `{"detail":"ok"}`, hook.Allowed, "answered 200 OK", 1},
		{204, "", hook.Allowed, "answered 204 No Content", 1},
		{299, "", hook.Allowed, "answered 299", 1},
		{403, `{"title":"no","detail":"frozen until Monday"}`, hook.Refused, "frozen until Monday", 1},
		{409, `{"detail":7}`, hook.Refused, "answered 409 Conflict", 1},
		{422, "not JSON", hook.Refused, "answered 422 Unprocessable Entity", 1},
		{422, "{\"detail\":\"a\\u001b[31mb\\u202ec\\n\"}", hook.Refused, "a [31mb c", 1},
		{301, "", hook.Unavailable, "answered 301 Moved Permanently", 3},
		{400, "", hook.Unavailable, "answered 400 Bad Request", 3},
		{401, "", hook.Unavailable, "answered 401 Unauthorized", 3},
		{404, "", hook.Unavailable, "answered 404 Not Found", 3},
		{429, "", hook.Unavailable, "answered 429 Too Many Requests", 3},
		{500, `{"detail":"broken"}`, hook.Unavailable, "broken", 3},
		{599, "", hook.Unavailable, "answered 599", 3},
	} {
		t.Run(fmt.Sprint(row.status, " ", row.body), func(t *testing.T) {
			t.Parallel()
			r := receive(t, status(row.status, row.body))
			want := hook.Answer{Verdict: row.verdict, Status: row.status, Body: row.body, Detail: row.detail, Tries: row.tries}
			if got := r.post(hook.Message{URL: "/"}); got != want || len(r.requests) != row.tries {
				t.Errorf("got %+v after %d requests, want %+v", got, len(r.requests), want)
			}
		})
	}
}

func TestRequest(t *testing.T) {
	t.Parallel()
	r := receive(t, status(204, ""))
	key, err := hook.ParseKey("whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=")
	if err != nil {
		t.Fatal(err)
	}
	r.post(hook.Message{URL: "/a?b=c", Headers: map[string]string{"X-Team": "data"}, Body: []byte(`{"hook":"preRunHook"}`), Key: key, ID: "job_01-preRunHook"})
	request := r.requests[0]
	got := fmt.Sprintf("%s %s %s", request.Method, request.RequestURI, r.bodies[0])
	if want := `POST /a?b=c {"hook":"preRunHook"}`; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "User-Agent": "sortie", "X-Team": "data", "Webhook-Id": "job_01-preRunHook",
		"X-Orchestrator-Timestamp": fmt.Sprint(epoch.Unix()), "Accept-Encoding": "",
		"X-Orchestrator-Signature": "sha256=dbabdcf49001ec40619fe92933d55917215db68c057e39003539be03ecb8a0e1",
	} {
		if got := request.Header.Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestRetryPauses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		after string
		want  []time.Duration
	}{
		"backoff":               {"", []time.Duration{500 * time.Millisecond, 2 * time.Second}},
		"Retry-After":           {"3", []time.Duration{3 * time.Second, 3 * time.Second}},
		"long Retry-After":      {"3600", []time.Duration{hook.MaxPause, hook.MaxPause}},
		"malformed Retry-After": {"soon", []time.Duration{500 * time.Millisecond, 2 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := receive(t, func(n int, w http.ResponseWriter, _ *http.Request) {
				if n == hook.Tries {
					w.WriteHeader(http.StatusOK)
					return
				}
				w.Header().Set("Retry-After", row.after)
				w.WriteHeader(http.StatusServiceUnavailable)
			})
			got := r.post(hook.Message{URL: "/", ID: "same"})
			if got.Verdict != hook.Allowed || got.Tries != hook.Tries || !slices.Equal(r.clock.pauses, row.want) {
				t.Errorf("got %+v after pauses of %v, want allowed after %v", got, r.clock.pauses, row.want)
			}
			first, last := r.requests[0].Header, r.requests[2].Header
			if first.Get(hook.HeaderWebhookID) != last.Get(hook.HeaderWebhookID) || first.Get(hook.HeaderTimestamp) == last.Get(hook.HeaderTimestamp) {
				t.Errorf("got headers %v, then %v, want the same id and the time of each try", first, last)
			}
		})
	}
}

// TestSlowReceiver checks the time limit of a try before the headers and during the body.
func TestSlowReceiver(t *testing.T) {
	t.Parallel()
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprint("status sent ", early), func(t *testing.T) {
			t.Parallel()
			arrived := make(chan struct{}, hook.Tries)
			r := receive(t, func(_ int, w http.ResponseWriter, request *http.Request) {
				if early {
					w.WriteHeader(http.StatusOK)
					_ = http.NewResponseController(w).Flush()
				}
				arrived <- struct{}{}
				<-request.Context().Done()
			})
			done := make(chan hook.Answer)
			go func() {
				a, _ := r.client.Post(t.Context(), hook.Message{URL: r.URL, Timeout: 7 * time.Second})
				done <- a
			}()
			for range hook.Tries {
				<-arrived
				r.clock.Advance(7*time.Second - 1)
				select {
				case a := <-done:
					t.Fatalf("got %+v before the limit", a)
				default:
				}
				r.clock.Advance(1)
			}
			if got := <-done; got.Verdict != hook.Unavailable || got.Detail != "no answer from 127.0.0.1 within 7s" || got.Tries != hook.Tries {
				t.Errorf("got %+v, want unavailable after the limit", got)
			}
		})
	}
}

func TestCallerInterrupts(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	r := receive(t, func(_ int, _ http.ResponseWriter, request *http.Request) {
		cancel()
		<-request.Context().Done()
	})
	if a, err := r.client.Post(ctx, hook.Message{URL: r.URL + "/s3cret"}); !errors.Is(err, context.Canceled) || strings.Contains(err.Error(), "s3cret") || a != (hook.Answer{}) {
		t.Errorf("got %+v, %v, want the error of the context", a, err)
	}
}

// TestDeadlineBoundsTheTries gives the caller too little time for three tries.
func TestDeadlineBoundsTheTries(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		left  time.Duration
		tries int
	}{{1900 * time.Millisecond, 0}, {9 * time.Second, 1}, {25 * time.Second, 1}, {33 * time.Second, 2}, {time.Hour, 3}} {
		r := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "5")
			w.WriteHeader(http.StatusServiceUnavailable)
		})
		ctx, cancel := r.within(row.left)
		got, err := r.client.Post(ctx, hook.Message{URL: r.URL, Timeout: 25 * time.Second})
		cancel()
		if got.Tries != row.tries || len(r.requests) != row.tries || errors.Is(err, hook.ErrNoTime) != (row.tries == 0) {
			t.Errorf("%v: got %+v, %v, want %d tries", row.left, got, err, row.tries)
		}
	}
}

// TestFirstTryEndsBeforeTheDeadline gives the caller less time than the limit of a try. The
// result must be an answer, so that the caller does not retry forever.
func TestFirstTryEndsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	r := receive(t, func(_ int, _ http.ResponseWriter, request *http.Request) {
		close(arrived)
		<-request.Context().Done()
	})
	ctx, cancel := r.within(8 * time.Second)
	defer cancel()
	go func() {
		<-arrived
		r.clock.Advance(7 * time.Second)
	}()
	got, err := r.client.Post(ctx, hook.Message{URL: r.URL, Timeout: 20 * time.Second})
	if err != nil || got.Verdict != hook.Unavailable || got.Tries != 1 || got.Detail != "no answer from 127.0.0.1 within 7s" {
		t.Errorf("got %+v, %v, want no answer within 7 s", got, err)
	}
}

func TestLongAnswerIsCut(t *testing.T) {
	t.Parallel()
	endless := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		for chunk := bytes.Repeat([]byte("é\xff"), 1000); ; {
			if _, err := w.Write(chunk); err != nil {
				return
			}
		}
	})
	got := endless.post(hook.Message{URL: "/"})
	if got.Verdict != hook.Refused || len(got.Body) > limit.HookBody || !strings.HasSuffix(got.Body, "(cut)") || !utf8.ValidString(got.Body) {
		t.Errorf("got verdict %s and a body of %d bytes, want refused and at most %d", got.Verdict, len(got.Body), limit.HookBody)
	}
	headers := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Long", strings.Repeat("x", 64<<10))
	})
	if got := headers.post(hook.Message{URL: "/"}); got.Verdict != hook.Unavailable || got.Status != 0 {
		t.Errorf("headers of 64 KiB: got %+v, want unavailable", got)
	}
	detail := receive(t, status(403, `{"detail":"`+strings.Repeat("x", 32<<10)+`"}`))
	if got := detail.post(hook.Message{URL: "/"}); len(got.Detail) != limit.Message {
		t.Errorf("got a detail of %d bytes, want %d", len(got.Detail), limit.Message)
	}
}

// TestRedirectIsNotFollowed redirects to a permitted server, and to others.
func TestRedirectIsNotFollowed(t *testing.T) {
	t.Parallel()
	reached := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("got a request of %s, want none", r.URL)
	}))
	t.Cleanup(reached.Close)
	for _, code := range []int{301, 302, 303, 307, 308} {
		for _, to := range []string{reached.URL, "http://169.254.169.254/", "file:///etc/passwd", "/again"} {
			r := receive(t, func(_ int, w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(code)
			})
			got := r.post(hook.Message{URL: "/"})
			if got.Verdict != hook.Unavailable || got.Status != code || len(r.requests) != hook.Tries || r.requests[2].URL.Path != "/" {
				t.Errorf("%d to %s: got %+v after %d requests, want unavailable", code, to, got, len(r.requests))
			}
		}
	}
}

// TestEachConnectionIsChecked resolves a permitted name to another address for the second try,
// as in a DNS rebinding attack (RL-4.16).
func TestEachConnectionIsChecked(t *testing.T) {
	t.Parallel()
	r := receive(t, status(503, ""))
	r.names.addresses = func(n int) []string {
		if n == 1 {
			return []string{"127.0.0.1"}
		}
		return []string{"127.0.0.2"}
	}
	got := r.post(hook.Message{URL: portless(t, r)})
	if got.Verdict != hook.Unavailable || got.Tries != 2 || len(r.requests) != 1 || !strings.Contains(got.Detail, "not public") {
		t.Errorf("got %+v after %d requests, want the second address refused", got, len(r.requests))
	}
}

// portless returns a URL with a host name and the receiver's port. It changes the client's
// policy to permit that port.
func portless(t *testing.T, r *receiver) string {
	t.Helper()
	_, port, _ := strings.Cut(strings.TrimPrefix(r.URL, "https://"), ":")
	policy, err := guard.Policy{}.WithRules("127.0.0.1:" + port)
	if err == nil {
		policy, err = policy.WithPorts(port)
	}
	if err != nil {
		t.Fatal(err)
	}
	r.replace(policy)
	return r.at("example.com") // a name in the server's certificate
}

// TestEachAddressIsChecked resolves a name to several addresses. Only the permitted one may be
// dialed.
func TestEachAddressIsChecked(t *testing.T) {
	t.Parallel()
	r := receive(t, status(204, ""))
	r.names.addresses = func(int) []string { return []string{"127.0.0.2", "10.0.0.1", "::1", "127.0.0.1"} }
	if got := r.post(hook.Message{URL: portless(t, r)}); got.Verdict != hook.Allowed {
		t.Errorf("got %+v, want the permitted address reached", got)
	}
}

// TestNamesOfPrivateAddresses resolves a public name to addresses that are not public.
func TestNamesOfPrivateAddresses(t *testing.T) {
	t.Parallel()
	for _, address := range []string{
		"127.0.0.1", "::1", "10.0.0.1", "172.16.0.1", "192.168.0.1", "100.64.0.1", "169.254.169.254", "fd00:ec2::254", "168.63.129.16",
		"0.0.0.0", "::", "64:ff9b::7f00:1", "2002:7f00:1::", "2001::1", "fe80::1", "fc00::1", "224.0.0.1", "255.255.255.255",
	} {
		r := receive(t, status(204, ""), "10.9.9.9")
		r.names.addresses = func(int) []string { return []string{address} }
		got := r.post(hook.Message{URL: "https://hooks.example.org/s3cret?token=s3cret"})
		want := hook.Answer{Verdict: hook.Unavailable, Tries: 1, Detail: "host hooks.example.org has an address that is not public and that the operator does not permit"}
		if got != want || len(r.requests) != 0 {
			t.Errorf("%s: got %+v, want %+v", address, got, want)
		}
	}
}

func TestFailuresAreUnavailable(t *testing.T) {
	t.Parallel()
	r := receive(t, status(204, ""))
	closed := receive(t, status(204, ""))
	closed.Close()
	for name, row := range map[string]struct{ url, detail string }{
		"unknown name":       {"https://hooks.example.org/s3cret", "host hooks.example.org has no address"},
		"refused connection": {closed.URL + "/s3cret", "connection to 127.0.0.1 failed"},
		"no TLS":             {strings.Replace(r.URL, "https", "http", 1) + "/s3cret", "answered 400 Bad Request"},
		"private address":    {"https://10.0.0.1/s3cret", "address 10.0.0.1 is not public, want a public host, or one that the operator permits"},
	} {
		if got := r.post(hook.Message{URL: row.url}); got.Verdict != hook.Unavailable || got.Detail != row.detail {
			t.Errorf("%s: got %+v, want unavailable with %q", name, got, row.detail)
		}
	}
	strict := receive(t, status(204, ""))
	policy, err := guard.Policy{}.WithRules("127.0.0.1")
	if err != nil {
		t.Fatal(err)
	}
	strict.client = hook.New(hook.Config{Policy: policy, Clock: strict.clock, RootCAs: x509.NewCertPool()})
	if got := strict.post(hook.Message{URL: "/s3cret"}); got.Detail != "certificate of 127.0.0.1 is not valid for it" || len(strict.requests) != 0 {
		t.Errorf("unknown authority: got %+v, want the certificate refused", got)
	}
	if got := r.post(hook.Message{URL: "/", Headers: map[string]string{"Host": "internal"}}); got.Verdict != hook.Unavailable || got.Tries != 0 {
		t.Errorf("reserved header: got %+v, want no request", got)
	}
}

// TestProxyIsNotUsed sets the proxy variables that net/http reads.
//
//nolint:paralleltest // t.Setenv
func TestProxyIsNotUsed(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("got %s %s at the proxy, want none", r.Method, r.URL)
	}))
	t.Cleanup(proxy.Close)
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"} {
		t.Setenv(name, proxy.URL)
	}
	r := receive(t, status(204, ""))
	r.names.addresses = func(int) []string { return []string{"127.0.0.1"} }
	if got := r.post(hook.Message{URL: portless(t, r)}); got.Verdict != hook.Allowed {
		t.Errorf("got %+v, want a direct connection", got)
	}
}

func TestMain(m *testing.M) {
	log.SetOutput(io.Discard) // TLS errors of the servers
	m.Run()
}
