package kubernetes

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/sortie-dev/sortie/shared/base/clock"
)

// ConfigOf returns the client configuration in the text of a kubeconfig file. It is used on
// other hosts, so ConfigOf refuses references to files and programs. It also refuses a
// connection that is not verified. The error contains no secret value. withoutUser ignores the
// credentials of the text.
func ConfigOf(kubeconfig string, withoutUser bool) (*rest.Config, error) {
	all, err := clientcmd.Load([]byte(kubeconfig))
	if err != nil {
		return nil, errors.New("kubeconfig: malformed, want the text of a kubeconfig file") // the cause can repeat values
	}
	current := all.Contexts[all.CurrentContext]
	if current == nil {
		return nil, fmt.Errorf("kubeconfig: current-context %q is not one of its contexts", all.CurrentContext)
	}
	var problems []error
	refuse := func(is bool, what string) {
		if is {
			problems = append(problems, errors.New("kubeconfig: "+what))
		}
	}
	cluster := all.Clusters[current.Cluster]
	if cluster == nil {
		return nil, fmt.Errorf("kubeconfig: the context names the cluster %q, which is missing", current.Cluster)
	}
	server, err := url.Parse(cluster.Server)
	refuse(err != nil || server.Scheme != "https" || server.Host == "", "server: want an https URL")
	refuse(cluster.InsecureSkipTLSVerify, "insecure-skip-tls-verify: want certificate-authority-data")
	refuse(cluster.CertificateAuthority != "", "certificate-authority: a file, want certificate-authority-data")
	user := all.AuthInfos[current.AuthInfo]
	switch {
	case withoutUser:
		all.AuthInfos[current.AuthInfo] = api.NewAuthInfo()
	case user == nil:
		refuse(true, fmt.Sprintf("the context names the user %q, who is missing", current.AuthInfo))
	default:
		refuse(user.Exec != nil || user.AuthProvider != nil, "exec, auth-provider: a program, want a token, or the field eks")
		refuse(user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "",
			"tokenFile, client-certificate, client-key: files, want token, or client-certificate-data and client-key-data")
		refuse(user.Exec == nil && user.AuthProvider == nil && user.TokenFile == "" && user.Token == "" &&
			len(user.ClientCertificateData) == 0 && user.ClientCertificate == "", "the user has no token and no client-certificate-data")
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	config, err := clientcmd.NewNonInteractiveClientConfig(*all, all.CurrentContext, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, errors.New("kubeconfig: incomplete")
	}
	return config, nil
}

// tokenLife is how long a bearer token is used. A token of EKS is valid for 15 minutes.
const tokenLife = 10 * time.Minute

// ConnectByToken is like ConnectWith, with bearer tokens from sign. A token is used for ten
// minutes, and not again after the cluster has refused it.
func ConnectByToken(config *rest.Config, sign func(*http.Request) (token string, err error), c clock.Clock) (Client, error) {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &tokens{next: next, sign: sign, clock: c} })
	return ConnectWith(config)
}

// tokens adds bearer tokens to requests.
type tokens struct {
	next  http.RoundTripper
	sign  func(*http.Request) (string, error)
	clock clock.Clock

	mu     sync.Mutex
	token  string
	signed time.Time
}

// RoundTrip implements http.RoundTripper.
func (t *tokens) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := t.current(r)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := t.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		t.forget(token)
	}
	return response, err
}

func (t *tokens) current(r *http.Request) (string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.clock.Now()
	if t.token != "" && now.Sub(t.signed) < tokenLife {
		return t.token, nil
	}
	token, err := t.sign(r)
	if err != nil {
		return "", fmt.Errorf("cannot sign a token for the cluster: %w", err)
	}
	t.token, t.signed = token, now
	return token, nil
}

func (t *tokens) forget(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token == token {
		t.token = ""
	}
}
