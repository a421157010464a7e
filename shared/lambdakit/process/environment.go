package process

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// environment reads variables and remembers which, and what was wrong.
type environment struct {
	lookup   func(string) (string, bool)
	read     []string // those that are set
	problems []error
}

// get reads a variable; empty is absent.
func (e *environment) get(name string) (string, bool) {
	value, ok := e.lookup(name)
	if !ok || value == "" {
		return "", false
	}
	if !slices.Contains(e.read, name) {
		e.read = append(e.read, name)
	}
	return value, true
}

// Need reads a variable without which the function cannot work.
func (p *Process) Need(name string) string {
	value, ok := p.env.get(name)
	if !ok {
		p.problem(fmt.Errorf("%s is not set", name))
	}
	return value
}

// Option reads a variable that may be left out.
func (p *Process) Option(name, fallback string) string {
	if value, ok := p.env.get(name); ok {
		return value
	}
	return fallback
}

// List reads a variable with several values, with commas between them. An empty
// fallback makes it one that is needed.
func (p *Process) List(name, fallback string) []string {
	value := p.Option(name, fallback)
	if value == "" {
		p.problem(fmt.Errorf("%s is not set", name))
		return nil
	}
	var list []string
	for part := range strings.SplitSeq(value, ",") {
		if part = strings.TrimSpace(part); part == "" {
			p.problem(fmt.Errorf("%s has an empty value between its commas", name))
		}
		list = append(list, part)
	}
	return list
}

// Settings reads the service's configuration (orchestrator.ConfigFrom).
func (p *Process) Settings() orchestrator.Config {
	config, err := orchestrator.ConfigFrom(p.env.get)
	if err != nil {
		p.problem(err)
	}
	return config
}

// Check takes the error of what was made from the environment. Where variables
// are missing it says nothing new.
func (p *Process) Check(err error) {
	if err != nil && len(p.env.problems) == 0 {
		p.problem(err)
	}
}

// problem notes one, once.
func (p *Process) problem(err error) {
	if !slices.ContainsFunc(p.env.problems, func(known error) bool { return known.Error() == err.Error() }) {
		p.env.problems = append(p.env.problems, err)
	}
}

// answerLimit is how long one request to AWS waits for the answer to begin. The
// services that are called through it answer in milliseconds; a connection that
// broke unseen while the process was frozen never does, and would hold a call
// until Lambda's deadline instead of being tried again.
const answerLimit = 10 * time.Second

// AWS is the configuration of the AWS SDK, from the variables that Lambda sets.
// Credentials are the function's role's; they are good for as long as the
// process lives. AWS_ENDPOINT_URL leads to a stand-in for AWS, and
// AWS_ENDPOINT_URL_DYNAMODB and its like to one for a service.
//
// It is not the SDK's own loader: that links the clients of SSO and STS, and
// looks for files, none of which is there.
func (p *Process) AWS() aws.Config {
	value := func(name string) string {
		text, _ := p.host.Env(name)
		return text
	}
	credentials := aws.Credentials{
		AccessKeyID: value("AWS_ACCESS_KEY_ID"), SecretAccessKey: value("AWS_SECRET_ACCESS_KEY"),
		SessionToken: value("AWS_SESSION_TOKEN"), Source: "Lambda",
	}
	config := aws.Config{
		Region: value("AWS_REGION"),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			if !credentials.HasKeys() {
				return aws.Credentials{}, errors.New("the environment has no credentials")
			}
			return credentials, nil
		}),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = answerLimit
		}),
	}
	if endpoint := value("AWS_ENDPOINT_URL"); endpoint != "" {
		config.BaseEndpoint = &endpoint
	}
	config.ConfigSources = []any{endpoints(value)}
	return config
}

// endpoints tells the SDK's clients of the variables with a service's endpoint.
type endpoints func(variable string) string

// GetServiceBaseEndpoint is what the clients ask for.
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (endpoint string, found bool, err error) {
	endpoint = e("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return endpoint, endpoint != "", nil
}
