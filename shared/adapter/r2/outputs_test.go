package r2_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"go.uber.org/goleak"

	"github.com/sortie-dev/sortie/local/proof/port/porttest"
	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/shared/adapter/r2"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

const smallestPart = 5 << 20

func TestMain(m *testing.M) {
	// The HTTP library of the store has two goroutines that end ten seconds
	// after their server, or with the process.
	goleak.VerifyTestMain(
		m,
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.(*workerPool).Start.func2"),
		goleak.IgnoreAnyFunction("github.com/valyala/fasthttp.updateServerDate.func1"),
	)
}

// setup starts a store and returns the configuration for it.
func setup(t *testing.T) (ours, workers r2.Config) {
	t.Helper()
	owner, worker := s3.Keys{ID: "owner", Secret: "owner-secret"}, s3.Keys{ID: "worker", Secret: "worker-secret"}
	server, err := s3.Start(t.Context(), s3.Config{Dir: t.TempDir(), Uploads: "uploads", Accepted: "kept", Owner: owner, Worker: worker})
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		if err := server.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	ours = r2.Config{
		Endpoint: server.URL(), AccessKeyID: owner.ID, SecretAccessKey: owner.Secret, Uploads: "uploads", Accepted: "kept",
		CopyLimit: smallestPart, HTTP: &http.Client{Transport: transport},
	}
	workers = ours
	workers.AccessKeyID, workers.SecretAccessKey, workers.Accepted = worker.ID, worker.Secret, ""
	return ours, workers
}

func outputs(t *testing.T, cfg r2.Config) *r2.Outputs {
	t.Helper()
	o, err := r2.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// client returns the SDK's client, for operations that the adapter does not
// offer.
func client(cfg r2.Config) *awss3.Client {
	return awss3.New(awss3.Options{
		BaseEndpoint: &cfg.Endpoint, Region: "auto", UsePathStyle: true, HTTPClient: cfg.HTTP,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: cfg.AccessKeyID, SecretAccessKey: cfg.SecretAccessKey}, nil
		}),
	})
}

func unfinished(t *testing.T, cfg r2.Config, prefix string) int {
	t.Helper()
	listed, err := client(cfg).ListMultipartUploads(t.Context(), &awss3.ListMultipartUploadsInput{Bucket: &cfg.Uploads, Prefix: &prefix})
	if err != nil {
		t.Fatal(err)
	}
	return len(listed.Uploads)
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	porttest.Outputs(t, func(t *testing.T) porttest.OutputsHarness {
		t.Helper()
		ours, workers := setup(t)
		uploader, err := r2.NewUploader(workers)
		if err != nil {
			t.Fatal(err)
		}
		return porttest.OutputsHarness{
			Outputs: outputs(t, ours),
			OutputsAt: func(now time.Time) port.Outputs {
				then := ours
				then.Clock = clock.NewVirtual(now)
				return outputs(t, then)
			},
			Put: func(t *testing.T, key, contentType string, body io.ReaderAt, size int64) {
				t.Helper()
				if err := uploader.Upload(t.Context(), key, body, size, contentType); err != nil {
					t.Fatal(err)
				}
			},
			Begin: func(t *testing.T, key string) {
				t.Helper()
				_, err := client(workers).CreateMultipartUpload(t.Context(), &awss3.CreateMultipartUploadInput{Bucket: &workers.Uploads, Key: &key})
				if err != nil {
					t.Fatal(err)
				}
			},
			Unfinished: func(t *testing.T, prefix string) int { return unfinished(t, ours, prefix) },
			HTTP:       ours.HTTP,
			Big:        smallestPart,
		}
	})
}

func TestFailedUploadLeavesNothing(t *testing.T) {
	t.Parallel()
	ours, workers := setup(t)
	uploader, err := r2.NewUploader(workers)
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{1 << 20, 40 << 20} {
		if err := uploader.Upload(t.Context(), "exports/t1/a", porttest.Interrupted(size), size, ""); !fault.Is(err, fault.Unavailable) {
			t.Errorf("interrupted upload of %d bytes: got %v", size, err)
		}
		if _, err := outputs(t, ours).Head(t.Context(), port.Uploads, "exports/t1/a"); !errors.Is(err, port.ErrNotFound) {
			t.Errorf("got %v, want no object", err)
		}
		if n := unfinished(t, ours, ""); n != 0 {
			t.Errorf("got %d unfinished uploads, want 0", n)
		}
	}
}

// outage is a store that is unreachable for the first calls of each kind, and
// loses the response to the first completed upload.
type outage struct {
	http.RoundTripper
	mu   sync.Mutex
	away map[string]int
	lost bool
}

var errAway = errors.New("connection refused")

func (o *outage) RoundTrip(r *http.Request) (*http.Response, error) {
	o.mu.Lock()
	kind := r.Method + " " + strings.Join(slices.Sorted(maps.Keys(r.URL.Query())), " ")
	o.away[kind]++
	away, ends := o.away[kind] <= 3, r.Method == http.MethodPost && r.URL.Query().Has("uploadId")
	lost := ends && !away && !o.lost
	o.lost = o.lost || lost
	o.mu.Unlock()
	if away {
		return nil, errAway
	}
	answer, err := o.RoundTripper.RoundTrip(r)
	if err == nil && lost {
		return nil, errors.Join(errAway, answer.Body.Close())
	}
	return answer, err
}

func TestUploadOutlastsAnOutage(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{1 << 20, 20 << 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			t.Parallel()
			ours, workers := setup(t)
			workers.HTTP = &http.Client{Transport: &outage{RoundTripper: workers.HTTP.Transport, away: map[string]int{}}}
			uploader, err := r2.NewUploader(workers)
			if err != nil {
				t.Fatal(err)
			}
			body := strings.NewReader(strings.Repeat("x", int(size)))
			if err := uploader.Upload(t.Context(), "exports/t1/a", body, size, ""); err != nil {
				t.Fatal(err)
			}
			object, err := outputs(t, ours).Head(t.Context(), port.Uploads, "exports/t1/a")
			if err != nil || object.Size != size {
				t.Errorf("got %+v, %v", object, err)
			}
			if n := unfinished(t, ours, ""); n != 0 {
				t.Errorf("got %d unfinished uploads, want 0", n)
			}
		})
	}
}

func TestFaultsHideStoreMessages(t *testing.T) {
	t.Parallel()
	ours, _ := setup(t)
	tests := []struct {
		name   string
		change func(*r2.Config)
		want   string
	}{
		{"wrong keys", func(c *r2.Config) { c.SecretAccessKey = "wrong" }, "credentials"},
		{"unknown account", func(c *r2.Config) { c.AccessKeyID = "absent" }, "credentials"},
		{"no server", func(c *r2.Config) { c.Endpoint = "http://127.0.0.1:1" }, "cannot"},
		{"unknown bucket", func(c *r2.Config) { c.Accepted = "elsewhere" }, "bucket"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			cfg := ours
			test.change(&cfg)
			_, _, err := outputs(t, cfg).Open(t.Context(), port.Accepted, "exports/t1/a", port.Span{})
			if !fault.Is(err, fault.Unavailable) {
				t.Fatalf("got %v", err)
			}
			message := fault.Of(err).Message
			if !strings.Contains(message, test.want) || strings.Contains(strings.ToLower(message), "operation error") {
				t.Errorf("got message %q", message)
			}
		})
	}
}

func TestConfigNamesEveryProblem(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		cfg  r2.Config
		want []string
	}{
		{"nothing", r2.Config{}, []string{"account id", "access key id", "secret", "uploads", "kept"}},
		{"bad values", r2.Config{Endpoint: "r2", AccessKeyID: "a", SecretAccessKey: "b", Uploads: "c", Accepted: "c", CopyLimit: 1}, []string{"endpoint", "two buckets", "copy limit"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := r2.New(test.cfg)
			for _, want := range test.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got an error without the %s: %v", want, err)
				}
			}
		})
	}
	if _, err := r2.NewUploader(r2.Config{AccountID: "a", AccessKeyID: "b", SecretAccessKey: "c", Uploads: "d"}); err != nil {
		t.Errorf("uploader with one bucket: got %v", err)
	}
}

func TestDefaultEndpointIsCloudflare(t *testing.T) {
	t.Parallel()
	o := outputs(t, r2.Config{AccountID: "abc", AccessKeyID: "b", SecretAccessKey: "c", Uploads: "d", Accepted: "e"})
	url, err := o.PresignGet(t.Context(), "exports/t1/a", "a", "text/plain", time.Minute)
	if err != nil || !strings.HasPrefix(url, "https://abc.r2.cloudflarestorage.com/e/exports/t1/a?") || !strings.Contains(url, "%2Fauto%2Fs3%2F") {
		t.Errorf("got URL %s, %v", strings.Split(url, "&X-Amz-Signature")[0], err)
	}
}

func TestKeyRotation(t *testing.T) {
	t.Parallel()
	keys, fails := r2.Keys{AccountID: "abc", AccessKeyID: "first", SecretAccessKey: "c"}, error(nil)
	o := outputs(t, r2.Config{
		Uploads: "d", Accepted: "e",
		Current: func(context.Context) (r2.Keys, error) { return keys, fails },
	})
	sign := func() string {
		url, err := o.PresignGet(t.Context(), "exports/t1/a", "a", "text/plain", time.Minute)
		if err != nil {
			return err.Error()
		}
		return url
	}
	if url := sign(); !strings.HasPrefix(url, "https://abc.r2.cloudflarestorage.com/e/") || !strings.Contains(url, "=first%2F") || !strings.Contains(url, "%2Fauto%2Fs3%2F") {
		t.Errorf("got first URL %s", url)
	}
	keys = r2.Keys{Endpoint: "https://s3.eu-west-1.amazonaws.com", Region: "eu-west-1", AccessKeyID: "second", SecretAccessKey: "d"}
	if url := sign(); !strings.HasPrefix(url, "https://s3.eu-west-1.amazonaws.com/e/") || !strings.Contains(url, "=second%2F") || !strings.Contains(url, "%2Feu-west-1%2Fs3%2F") {
		t.Errorf("got second URL %s", url)
	}
	keys = r2.Keys{AccountID: "abc"} // a secret without a value
	if _, err := o.Head(t.Context(), port.Accepted, "exports/t1/a"); !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "access key id") {
		t.Errorf("without keys: got %v", err)
	}
	fails = errors.New("no secret")
	if _, err := o.Head(t.Context(), port.Accepted, "exports/t1/a"); !fault.Is(err, fault.Unavailable) {
		t.Errorf("without a secret: got %v", err)
	}
}
