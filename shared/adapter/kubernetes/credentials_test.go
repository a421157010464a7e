package kubernetes_test

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/sortie-dev/sortie/shared/adapter/kubernetes"
	"github.com/sortie-dev/sortie/shared/base/clock"
)

// kubeconfig is the text of a kubeconfig file with the fields of a cluster and a user.
func kubeconfig(cluster, user string) string {
	return `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "clusters": [{"name": "c", "cluster": {` + cluster + `}}],
		"users": [{"name": "u", "user": {` + user + `}}], "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}]}`
}

func TestConfigOf(t *testing.T) {
	t.Parallel()
	const server = `"server": "https://east.example.org"`
	for name, row := range map[string]struct {
		text        string
		withoutUser bool
		want        []string // parts of the error; none is success
	}{
		"token":               {text: kubeconfig(server, `"token": "s3cret"`)},
		"without the user":    {text: kubeconfig(server, `"exec": {"command": "s3cret"}`), withoutUser: true},
		"no user needed":      {text: strings.Replace(kubeconfig(server, ""), `, "user": "u"`, "", 1), withoutUser: true},
		"no kubeconfig":       {text: `{"s3cret`, want: []string{"kubeconfig: malformed"}},
		"no context":          {text: `{"apiVersion": "v1", "kind": "Config", "current-context": "east"}`, want: []string{`current-context "east" is not one of its contexts`}},
		"no cluster":          {text: strings.Replace(kubeconfig(server, ""), `"cluster": "c"`, `"cluster": "west"`, 1), want: []string{`cluster "west", which is missing`}},
		"no such user":        {text: strings.Replace(kubeconfig(server, ""), `"user": "u"`, `"user": "x"`, 1), want: []string{`user "x", who is missing`}},
		"user without access": {text: kubeconfig(server, ""), want: []string{"no token"}},
		"everything is wrong": {
			text: kubeconfig(`"server": "http://east.example.org", "insecure-skip-tls-verify": true, "certificate-authority": "s3cret"`,
				`"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "s3cret"}, "tokenFile": "s3cret"`),
			want: []string{"server: want an https URL", "want certificate-authority-data", "certificate-authority: a file", "exec, auth-provider: a program", "tokenFile, client-certificate"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := kubernetes.ConfigOf(row.text, row.withoutUser)
			if len(row.want) == 0 && (err != nil || got.Host != "https://east.example.org" || row.withoutUser != (got.BearerToken == "") || got.ExecProvider != nil) {
				t.Errorf("got %v, %v, want the configuration", got, err)
			}
			for _, part := range row.want {
				if err == nil || !strings.Contains(err.Error(), part) || strings.Contains(err.Error(), "s3cret") {
					t.Errorf("got %v, want %q without a value", err, part)
				}
			}
		})
	}
}

// TestTokensAreSignedAgain checks that a token is used for ten minutes, and not again after
// the cluster has refused it.
func TestTokensAreSignedAgain(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var got []string
	refused := ""
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		if got[len(got)-1] == refused {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"kind": "JobList", "apiVersion": "batch/v1", "items": []}`)
	}))
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{
		CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}}
	c := clock.NewVirtual(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	signed := 0
	client, err := kubernetes.ConnectByToken(config, func(*http.Request) (string, error) {
		if signed++; signed == 4 {
			return "", errors.New("no credentials")
		}
		return fmt.Sprint("token-", signed), nil
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	ask := func() error { _, err := client.Jobs("sortie").List(t.Context(), metav1.ListOptions{}); return err }
	for _, after := range []time.Duration{0, 10*time.Minute - time.Second, time.Second} {
		c.Advance(after)
		if err := ask(); err != nil {
			t.Fatal(err)
		}
	}
	mu.Lock()
	refused = "token-2"
	mu.Unlock()
	if ask() == nil {
		t.Error("got an answer with a token that is refused")
	}
	if err := ask(); err != nil {
		t.Errorf("got %v, want a new token", err)
	}
	c.Advance(10 * time.Minute)
	if err := ask(); err == nil || !strings.Contains(err.Error(), "cannot sign a token for the cluster") {
		t.Errorf("got %v, want that no token can be signed", err)
	}
	if want := []string{"token-1", "token-1", "token-2", "token-2", "token-3"}; !slices.Equal(got, want) {
		t.Errorf("got tokens %v, want %v", got, want)
	}
	server.CloseClientConnections()
}

// TestEKSTokens checks a token as the authenticator of EKS does: it calls the URL with the
// header that names the cluster.
func TestEKSTokens(t *testing.T) {
	t.Parallel()
	cfg := aws.Config{Region: "eu-west-1", Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AKIDEXAMPLE", SecretAccessKey: "s3cret", SessionToken: "session"}, nil
	})}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://east.example.org", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	token, err := kubernetes.EKSTokens(cfg, "east")(request)
	if err != nil {
		t.Fatal(err)
	}
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "k8s-aws-v1."))
	if err != nil || !strings.HasPrefix(token, "k8s-aws-v1.") {
		t.Fatalf("got token %q (%v), want k8s-aws-v1. and a URL", token, err)
	}
	at, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	q := at.Query()
	headers := strings.Split(q.Get("X-Amz-SignedHeaders"), ";")
	if at.Scheme != "https" || at.Host != "sts.eu-west-1.amazonaws.com" || q.Get("Action") != "GetCallerIdentity" || q.Get("X-Amz-Expires") != "60" ||
		q.Get("X-Amz-Security-Token") != "session" || !slices.Contains(headers, "x-k8s-aws-id") || !slices.Contains(headers, "host") {
		t.Errorf("got %s, want a call of GetCallerIdentity for 60 s that names the cluster", at.Redacted())
	}
	if strings.Contains(string(text), "s3cret") {
		t.Error("got a token with the key")
	}
	other, err := kubernetes.EKSTokens(cfg, "west")(request)
	if err != nil || signature(t, other) == signature(t, token) {
		t.Errorf("got the same signature for another cluster (%v)", err)
	}
}

func signature(t *testing.T, token string) string {
	t.Helper()
	text, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(token, "k8s-aws-v1."))
	if err != nil {
		t.Fatal(err)
	}
	at, err := url.Parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	return at.Query().Get("X-Amz-Signature")
}
