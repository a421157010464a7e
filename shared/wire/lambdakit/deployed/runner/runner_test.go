package runner_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sortie-dev/sortie/local/proof/port/awstest"
	"github.com/sortie-dev/sortie/shared/adapter/secrets"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/deployed/runner"
	"github.com/sortie-dev/sortie/shared/wire/lambdakit/process"
)

// function is the process of a function with a cluster that has one pod. The clock sets when it
// reads its secrets again.
type function struct {
	*process.Process
	clock *clock.Virtual

	mu sync.Mutex
	// kubernetes is the secret. asked contains the tokens that the cluster received.
	kubernetes secrets.Kubernetes
	asked      map[string]bool
	// refused makes the cluster refuse every call.
	refused bool
	config  func(user string) string
}

func setup(t *testing.T, without ...string) *function {
	t.Helper()
	f := &function{clock: clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)), asked: map[string]bool{}}
	cluster := httptest.NewTLSServer(f)
	t.Cleanup(cluster.Close)
	fly := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "[]") }))
	t.Cleanup(fly.Close)
	f.config = func(user string) string {
		authority, _ := json.Marshal(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cluster.Certificate().Raw}))
		return `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "users": [{"name": "u", "user": {` + user + `}}],
			"clusters": [{"name": "c", "cluster": {"server": "` + cluster.URL + `", "certificate-authority-data": ` + string(authority) + `}}],
			"contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`
	}
	aws := awstest.Serve(t, map[string]awstest.Call{"GetSecretValue": f.secret})
	env := map[string]string{
		"SORTIE_STAGE": "test", "SORTIE_SECRET_FLY": "sortie/test/fly", "SORTIE_FLY_URL": fly.URL, "SORTIE_FLY_APPS": "app",
		"SORTIE_STATE_MACHINE": "arn:aws:states:eu-central-1:210987654321:stateMachine:sortie-test-run", "SORTIE_SECRET_KUBERNETES": "sortie/test/kubernetes",
		"SORTIE_KUBERNETES_CLUSTER": "east", "SORTIE_KUBERNETES_NAMESPACES": "runs", "AWS_REGION": aws.Region, "AWS_ENDPOINT_URL": *aws.BaseEndpoint,
		"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test",
	}
	for _, name := range without {
		delete(env, name)
	}
	out := &bytes.Buffer{}
	f.Process = process.New("sweep", process.Host{
		Env: func(name string) (string, bool) { value, ok := env[name]; return value, ok },
		Out: out, Err: out, Clock: f.clock, Exit: func(code int) { t.Errorf("got exit code %d: %s", code, out) },
	})
	return f
}

func (f *function) secret(input json.RawMessage) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	var document any = secrets.Fly{Token: "FlyV1 token"}
	if strings.Contains(string(input), "kubernetes") {
		document = f.kubernetes
	}
	text, err := json.Marshal(document)
	return map[string]string{"SecretString": string(text)}, err
}

// ServeHTTP serves the API of the cluster.
func (f *function) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")] = true
	w.Header().Set("Content-Type", "application/json")
	switch {
	case f.refused:
		w.WriteHeader(http.StatusForbidden)
	case r.URL.Path == "/apis/batch/v1/namespaces/runs/jobs":
		_, _ = fmt.Fprint(w, `{"apiVersion": "batch/v1", "kind": "JobList", "items": []}`)
	default:
		_, _ = fmt.Fprint(w, `{"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a-x", "namespace": "runs", "uid": "2", "labels":
			{"batch.kubernetes.io/job-name": "a", "batch.kubernetes.io/controller-uid": "1"}}, "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}]}`)
	}
}

// tokens returns the tokens that the cluster received since the last call.
func (f *function) tokens() map[string]bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	got := f.asked
	f.asked = map[string]bool{}
	return got
}

func (f *function) store(document secrets.Kubernetes) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kubernetes = document
}

// TestClusterOfAFunction lists the machines of a cluster with the role of the function, with a
// token that replaces the role, and with a secret that is not usable.
func TestClusterOfAFunction(t *testing.T) {
	t.Parallel()
	f := setup(t)
	if got := deployed.RunnerOffer(f.Process); len(got.Clusters) != 1 || got.Clusters[0] != "east" || got.Runners[len(got.Runners)-1] != platform.RunnerKubernetes {
		t.Errorf("got %+v, want the cluster east", got)
	}
	f.store(secrets.Kubernetes{Kubeconfig: f.config(`"exec": {"command": "aws"}`), EKS: "prod"})
	r := runner.New(f.Process)
	list := func() (ids []string, err error) {
		err = r.List(t.Context(), func(m port.MachineStatus) bool { ids = append(ids, m.Cluster+"/"+m.App+"/"+m.ID); return true })
		return ids, err
	}
	ids, err := list()
	if err != nil || len(ids) != 1 || ids[0] != "east/runs/a.1" {
		t.Errorf("got machines %v, %v, want that of the pod", ids, err)
	}
	for token := range f.tokens() {
		if !strings.HasPrefix(token, "k8s-aws-v1.") {
			t.Errorf("got token %q, want one of EKS", token)
		}
	}

	f.store(secrets.Kubernetes{Kubeconfig: f.config(`"token": "second"`)})
	f.clock.Advance(time.Hour)
	if _, err := list(); err != nil {
		t.Error(err)
	}
	if got := f.tokens(); len(got) != 1 || !got["second"] {
		t.Errorf("got tokens %v, want that of the new secret", got)
	}

	f.store(secrets.Kubernetes{Kubeconfig: f.config(`"tokenFile": "/s3cret"`)})
	f.clock.Advance(time.Hour)
	if _, err := list(); err == nil || !strings.Contains(err.Error(), "tokenFile") || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("got %v, want that files are refused", err)
	}
}

// TestFunctionWithoutFly checks that a function without Fly uses the cluster as its default
// runner. A function without both refuses to launch machines.
func TestFunctionWithoutFly(t *testing.T) {
	t.Parallel()
	noFly := []string{"SORTIE_FLY_APPS", "SORTIE_FLY_URL", "SORTIE_SECRET_FLY"}
	f := setup(t, noFly...)
	if got := deployed.RunnerOffer(f.Process); got.Default() != platform.RunnerKubernetes || len(got.Runners) != 1 || len(got.FlyApps) != 0 {
		t.Errorf("got %+v, want the cluster alone", got)
	}
	f.store(secrets.Kubernetes{Kubeconfig: f.config(`"token": "first"`)})
	var ids []string
	err := runner.New(f.Process).List(t.Context(), func(m port.MachineStatus) bool { ids = append(ids, m.App+"/"+m.ID); return true })
	if err != nil || len(ids) != 1 || ids[0] != "runs/a.1" {
		t.Errorf("got machines %v, %v, want that of the pod", ids, err)
	}

	f = setup(t, append(noFly, "SORTIE_KUBERNETES_CLUSTER", "SORTIE_SECRET_KUBERNETES")...)
	if got := deployed.RunnerOffer(f.Process); got.Default() != "" {
		t.Errorf("got %+v, want no runner", got)
	}
	if _, err := runner.New(f.Process).Launch(t.Context(), port.LaunchSpec{Name: "m"}); !fault.Is(err, fault.LaunchRefused) {
		t.Errorf("got %v, want a refusal", err)
	}
}

// TestClusterThatRefusesIsReported checks that a cluster that refuses the function is reported
// and does not hide the machines of another runner.
func TestClusterThatRefusesIsReported(t *testing.T) {
	t.Parallel()
	f := setup(t)
	f.store(secrets.Kubernetes{Kubeconfig: f.config(`"token": "first"`)})
	f.refused = true
	r := runner.New(f.Process)
	err := r.List(t.Context(), func(port.MachineStatus) bool { return true })
	if err == nil || !strings.Contains(err.Error(), "namespace runs") {
		t.Errorf("got %v, want the failure of the namespace", err)
	}
	_, err = r.Inspect(t.Context(), port.Machine{Runner: platform.RunnerKubernetes, Cluster: "east", App: "runs", ID: "a.0f9b6a0c-5a36-4e7e-b9f6-6f5f6f2f0a10"})
	if fault.Of(err) == nil {
		t.Errorf("got %v, want a fault", err)
	}
}
