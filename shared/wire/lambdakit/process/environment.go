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

	"github.com/sortie-dev/sortie/shared/app/runs"
	"github.com/sortie-dev/sortie/shared/app/setting"
	"github.com/sortie-dev/sortie/shared/base/setting"
)

// environment reads variables. It records their names and all problems.
type environment struct {
	lookup   setting.Lookup
	known    []string // the variables that the function reads if they are set
	read     []string // the known variables that are set
	problems []error
}

// get returns the value of a variable. An empty value counts as absent.
func (e *environment) get(name string) (string, bool) {
	e.known = append(e.known, name)
	value, ok := e.lookup(name)
	if !ok || value == "" {
		return "", false
	}
	if !slices.Contains(e.read, name) {
		e.read = append(e.read, name)
	}
	return value, true
}

// Need returns the value of a required variable.
func (p *Process) Need(name string) string {
	value, ok := p.env.get(name)
	if !ok {
		p.problem(fmt.Errorf("%s is not set", name))
	}
	return value
}

// Option returns the value of a variable, or fallback if it is absent.
func (p *Process) Option(name, fallback string) string {
	if value, ok := p.env.get(name); ok {
		return value
	}
	return fallback
}

// List returns the comma-separated values of a variable, or those of fallback if it is absent.
func (p *Process) List(name, fallback string) []string {
	list, err := setting.ParseList(p.Option(name, fallback))
	if err != nil {
		p.problem(fmt.Errorf("%s: %w", name, err))
	}
	return list
}

// NeedList returns the comma-separated values of a required variable.
func (p *Process) NeedList(name string) []string { return p.List(name, p.Need(name)) }

// Settings returns the configuration that service.Read reads from the variables.
func (p *Process) Settings() runs.Config {
	config, err := service.Read(p.env.get)
	if err != nil {
		p.problem(err)
	}
	return config
}

// Check records the error of a constructor whose arguments come from variables. If variables
// already have problems, it ignores err, because they are its cause.
func (p *Process) Check(err error) {
	if err != nil && len(p.env.problems) == 0 {
		p.problem(err)
	}
}

// problem records an error unless an error with the same text is recorded.
func (p *Process) problem(err error) {
	if !slices.ContainsFunc(p.env.problems, func(known error) bool { return known.Error() == err.Error() }) {
		p.env.problems = append(p.env.problems, err)
	}
}

// answerLimit is the timeout of one request to AWS until the response headers. The services
// answer in milliseconds. A connection that broke while the process was frozen never answers.
// Without the limit, such a call would wait until Lambda's deadline instead of being retried.
const answerLimit = 10 * time.Second

// idleConnections is the number of connections to one service that stay open. The adapter of
// DynamoDB makes up to 32 calls at once. With the SDK's 10 the others would connect again for
// each batch.
const idleConnections = 64

// AWS returns the configuration of the AWS SDK from the variables that Lambda sets. The
// credentials are those of the function's role. They are valid for the life of the process.
// AWS_ENDPOINT_URL is the endpoint of another implementation of AWS; a variable like
// AWS_ENDPOINT_URL_DYNAMODB is that of one service.
//
// It does not use the SDK's own loader, which links the clients of SSO and STS and reads files
// that Lambda does not have.
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
				return aws.Credentials{}, errors.New("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are not set")
			}
			return credentials, nil
		}),
		HTTPClient: awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
			t.ResponseHeaderTimeout = answerLimit
			t.MaxIdleConnsPerHost = idleConnections
		}),
	}
	if endpoint := value("AWS_ENDPOINT_URL"); endpoint != "" {
		config.BaseEndpoint = &endpoint
	}
	config.ConfigSources = []any{endpoints(value)}
	return config
}

// endpoints returns the value of the variable that has a service's endpoint.
type endpoints func(variable string) string

// GetServiceBaseEndpoint implements the interface that the SDK's clients look for.
func (e endpoints) GetServiceBaseEndpoint(_ context.Context, service string) (endpoint string, found bool, err error) {
	endpoint = e("AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_")))
	return endpoint, endpoint != "", nil
}
