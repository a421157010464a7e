package doctortest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/sortie-dev/sortie/local/sortie/cli"
	"github.com/sortie-dev/sortie/local/sortie/command"
	"github.com/sortie-dev/sortie/local/twin/flymachines"
	"github.com/sortie-dev/sortie/local/twin/s3"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/access"
)

// The constants of the world.
const (
	// Certificate is the ARN of the domain's certificate.
	Certificate = "arn:aws:acm:eu-west-1:111122223333:certificate/one"
	// FlyToken is the token for the apps. ClientToken and CanaryToken are tokens of clients.
	FlyToken    = "FlyV1 fm2_s3cret" //nolint:gosec // it opens nothing
	ClientToken = "s3cret-of-the-client"
	CanaryToken = "s3cret-of-the-canary"
	// Target is AWS's host name for the API's domain.
	Target = "d-one.execute-api.eu-west-1.amazonaws.com"
)

// World is everything that the doctor calls.
type World struct {
	Prod  Prod
	Cloud *Cloud
	// Entry is the entry of prod in cdk.json; nil means no entry. Account is the account in the
	// manifest. NoAssembly means that "make synth" was not called. Stale means that it was
	// called before the last change of cdk.json.
	Entry             map[string]any
	Account           string
	NoAssembly, Stale bool
	// NoCredentials is the reason why AWS credentials are missing. Unloadable is the reason why
	// their configuration cannot be read. Both are empty by default.
	NoCredentials, Unloadable string
	// NoRegion means that neither settings nor credentials have a region.
	NoRegion bool
	// Fly maps apps to statuses that replace the answers of the Machines API.
	Fly map[string]int
	// Outputs is the document with the keys to the buckets.
	Outputs map[string]any
	// Lifecycles maps buckets to the store's answers about their lifecycle rules.
	Lifecycles map[string]string
	// CNAMEs and Hosts are the DNS records.
	CNAMEs map[string]string
	Hosts  map[string][]string
	// Health is the HTTP status of the API.
	Health int

	t     *testing.T
	cloud string
}

// New returns a world with the stage prod, which is ready and uses every feature.
func New(t *testing.T) *World {
	t.Helper()
	w := &World{
		t: t, Entry: map[string]any{"region": "eu-west-1"}, Account: "111122223333", Fly: map[string]int{}, Health: http.StatusOK,
		CNAMEs: map[string]string{"sortie.example.org": Target + "."}, Hosts: map[string][]string{Target: {"192.0.2.1"}},
		Lifecycles: map[string]string{"arke-exports": Rules(15, 2), "arke-exports-accepted": Rules(3650, 2)},
	}
	fly := w.serve(w.fly())
	store := w.serve(w.store())
	w.Prod = Prod{
		Secrets: []string{"clients", "fly", "outputs", "canary", "traces"}, FlyApps: []string{"runs-one", "runs-two"}, FlyURL: fly,
		Uploads: "arke-exports", Accepted: "arke-exports-accepted", Readers: 50, Machines: 64, Rate: 2000,
		Mail: "ops@example.org", Domain: "sortie.example.org", Certificate: Certificate,
	}
	w.Outputs = map[string]any{
		"endpoint": store, "accessKeyId": "owner-key", "secretAccessKey": "s3cret-of-the-owner", "workerAccessKeyId": "worker-key", "workerSecretAccessKey": "s3cret-of-the-worker",
	}
	w.Cloud = &Cloud{
		t: t, Account: "111122223333", ARN: "arn:aws:iam::111122223333:user/sortie", Errors: map[string]string{}, Regions: map[string]bool{}, Called: map[string]bool{},
		Bootstrap: "28", Concurrency: 1000, Requests: 10_000, Status: "UPDATE_COMPLETE", Deleted: map[string]bool{},
		Outputs: map[string]string{
			"URL": w.serve(http.HandlerFunc(w.api)) + "/prod", "DomainTarget": Target, "UploadsBucket": "arke-exports", "AcceptedBucket": "arke-exports-accepted",
		},
		Secrets: map[string]string{
			"sortie/prod/clients": Clients(Client("ci", ClientToken), Client("canary", CanaryToken)),
			"sortie/prod/fly":     text(map[string]string{"token": FlyToken}),
			"sortie/prod/canary":  text(map[string]string{"token": CanaryToken}),
			"sortie/prod/traces":  text(map[string]any{"headers": map[string]string{"api-key": "s3cret-of-traces"}}),
		},
		Subscriptions: map[string]string{"ops@example.org": "arn:aws:sns:eu-west-1:111122223333:sortie-prod-alarms:one"},
		Certificates: map[string]map[string]any{Certificate: {
			"Status": "ISSUED", "SubjectAlternativeNames": []string{"sortie.example.org"},
			"DomainValidationOptions": []any{map[string]any{"ValidationStatus": "SUCCESS"}},
		}},
	}
	w.cloud = w.serve(w.Cloud)
	return w
}

// Client returns the record of a client that may export, with its token.
func Client(name, token string) access.Token {
	t := access.Full(name, token, access.Default, access.Default)
	t.Scopes = []access.Scope{access.RunsRead, access.RunsWrite}
	return t
}

// Clients returns a document with records of clients.
func Clients(all ...access.Token) string { return text(map[string]any{"records": all}) }

// Rules returns the answer of a store with one lifecycle rule.
func Rules(expire, abort int) string {
	return "<LifecycleConfiguration><Rule><Status>Enabled</Status><Expiration>" + element("Days", text(expire)) +
		"</Expiration><AbortIncompleteMultipartUpload>" + element("DaysAfterInitiation", text(abort)) + "</AbortIncompleteMultipartUpload></Rule></LifecycleConfiguration>"
}

func (w *World) serve(handler http.Handler) string {
	server := httptest.NewServer(handler)
	w.t.Cleanup(server.Close)
	return server.URL
}

// fly serves the local Machines API with its apps.
func (w *World) fly() http.Handler {
	server, err := flymachines.Open(flymachines.Config{
		Dir: w.t.TempDir(), Token: strings.TrimPrefix(FlyToken, "FlyV1 "), Apps: []string{"runs-one", "runs-two", "acme-runs"},
		Starter: flymachines.Processes{Command: []string{os.DevNull}, Clock: clock.System{}}, Clock: clock.System{}, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet {
			w.t.Errorf("got the call %s %s, want one that reads", r.Method, r.URL)
		}
		if status := w.Fly[r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]]; status != 0 {
			http.Error(out, `{"error":"unauthorized"}`, status)
			return
		}
		server.ServeHTTP(out, r)
	})
}

// store serves the local object store, and the lifecycle rules.
func (w *World) store() http.Handler {
	server, err := s3.Start(w.t.Context(), s3.Config{
		Dir: w.t.TempDir(), Uploads: "arke-exports", Accepted: "arke-exports-accepted",
		Owner: s3.Keys{ID: "owner-key", Secret: "s3cret-of-the-owner"}, Worker: s3.Keys{ID: "worker-key", Secret: "s3cret-of-the-worker"},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		if err := server.Stop(context.Background()); err != nil {
			w.t.Error(err)
		}
	})
	target, err := url.Parse(server.URL())
	if err != nil {
		w.t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host // the signature has the host
	}}
	return http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		bucket := strings.Trim(r.URL.Path, "/")
		if !r.URL.Query().Has("lifecycle") {
			if r.Method != http.MethodGet && (r.Method != http.MethodPost || r.URL.Query().Get("uploadId") != "sortie-doctor") {
				w.t.Errorf("got the call %s %s, want one that reads", r.Method, r.URL)
			}
			proxy.ServeHTTP(out, r)
			return
		}
		switch rules := w.Lifecycles[bucket]; rules {
		case "":
			http.Error(out, "<Error><Code>NoSuchLifecycleConfiguration</Code></Error>", http.StatusNotFound)
		case "AccessDenied":
			http.Error(out, "<Error><Code>AccessDenied</Code></Error>", http.StatusForbidden)
		default:
			_, _ = io.WriteString(out, rules)
		}
	})
}

func (w *World) api(out http.ResponseWriter, r *http.Request) {
	if r.URL.Path != "/prod/healthz" {
		w.t.Errorf("got %s, want /prod/healthz", r.URL.Path)
	}
	out.WriteHeader(w.Health)
}

// LookupCNAME implements doctor.Resolver.
func (w *World) LookupCNAME(_ context.Context, host string) (string, error) {
	if name := w.CNAMEs[host]; name != "" {
		return name, nil
	}
	return "", errors.New("no such host")
}

// LookupHost implements doctor.Resolver.
func (w *World) LookupHost(_ context.Context, host string) ([]string, error) {
	if found := w.Hosts[host]; found != nil {
		return found, nil
	}
	return nil, errors.New("no such host")
}

// Result is the result of a command.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Run runs "sortie stage doctor" with the arguments.
func (w *World) Run(args ...string) Result {
	w.t.Helper()
	if w.Cloud.Secrets["sortie/prod/outputs"] == "" && w.Outputs != nil {
		w.Cloud.Secrets["sortie/prod/outputs"] = text(w.Outputs)
	}
	if w.Cloud.Template == "" {
		w.Cloud.Template = w.Prod.JSON()
	}
	settings, assembly := w.files()
	cfg := w.Cloud.config(w.cloud)
	if w.NoRegion {
		cfg.Region = ""
	}
	if w.NoCredentials != "" {
		cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New(w.NoCredentials)
		})
	}
	var stdout, stderr bytes.Buffer
	code := command.Main(w.t.Context(), cli.Program{
		Args:   append([]string{"stage", "doctor", "--settings", settings, "--assembly", assembly}, args...),
		Stdin:  strings.NewReader(""),
		Stdout: &stdout, Stderr: &stderr,
		Env: func(string) (string, bool) { return "", false }, Clock: clock.System{},
		AWS: func(context.Context) (aws.Config, error) {
			if w.Unloadable != "" {
				return aws.Config{}, errors.New(w.Unloadable)
			}
			return cfg, nil
		}, Resolver: w,
	})
	// Replace the test's path of the settings file.
	return Result{code, strings.ReplaceAll(stdout.String(), settings, "infra/cdk.json"), stderr.String()}
}

// files writes cdk.json and the assembly.
func (w *World) files() (settings, assembly string) {
	folder := w.t.TempDir()
	settings, assembly = filepath.Join(folder, "cdk.json"), filepath.Join(folder, "out")
	stages, region := map[string]any{}, "eu-west-1"
	if w.NoRegion {
		region = "unknown-region"
		delete(w.Entry, "region")
	}
	if w.Entry != nil {
		stages["prod"] = w.Entry
	}
	files := map[string]string{settings: text(map[string]any{"context": map[string]any{"stages": stages}})}
	if !w.NoAssembly {
		files[filepath.Join(assembly, "t.json")] = w.Prod.JSON()
		files[filepath.Join(assembly, "manifest.json")] = text(map[string]any{"artifacts": map[string]any{"sortie-prod": map[string]any{
			"environment": "aws://" + w.Account + "/" + region,
			"properties": map[string]any{
				"templateFile": "t.json", "requiresBootstrapStackVersion": 6, "bootstrapStackVersionSsmParameter": "/cdk-bootstrap/hnb659fds/version",
			},
		}}})
	}
	now := clock.System{}.Now()
	for name, content := range files {
		at := now
		if w.Stale && name == settings {
			at = now.Add(time.Minute)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(content), 0o600), os.Chtimes(name, at, at)); err != nil {
			w.t.Fatal(err)
		}
	}
	return settings, assembly
}

// Findings decodes the output of --json.
func Findings(t *testing.T, output string) map[string]map[string]string {
	t.Helper()
	var printed struct {
		Checks []map[string]string `json:"checks"`
	}
	if err := json.Unmarshal([]byte(output), &printed); err != nil {
		t.Fatalf("%v in %s", err, output)
	}
	found := map[string]map[string]string{}
	for _, f := range printed.Checks {
		found[f["check"]] = f
	}
	return found
}
