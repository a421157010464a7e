package r2

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	smithyauth "github.com/aws/smithy-go/auth"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
)

// regionAuto is the only region of R2.
const regionAuto = "auto"

// Keys are the fields of Config that Config.Current returns.
type Keys struct {
	Endpoint, AccountID, Region  string
	AccessKeyID, SecretAccessKey string
}

func (k Keys) problems() []error {
	var problems []error
	missing := func(value, name string) {
		if value == "" {
			problems = append(problems, fmt.Errorf("%s is missing", name))
		}
	}
	if k.Endpoint == "" {
		missing(k.AccountID, "the account id (or an endpoint)")
	} else if u, err := url.Parse(k.Endpoint); err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		problems = append(problems, errors.New("the endpoint is no http or https URL"))
	}
	missing(k.AccessKeyID, "the access key id")
	missing(k.SecretAccessKey, "the secret access key")
	return problems
}

func (c Config) keys() Keys {
	return Keys{c.Endpoint, c.AccountID, c.Region, c.AccessKeyID, c.SecretAccessKey}
}

// current returns a function that returns the validated keys for a request.
func (c Config) current() func(context.Context) (Keys, error) {
	return func(ctx context.Context) (Keys, error) {
		keys := c.keys()
		if c.Current != nil {
			var err error
			if keys, err = c.Current(ctx); err == nil {
				err = errors.Join(keys.problems()...)
			}
			if err != nil {
				return Keys{}, fmt.Errorf("cannot use the keys of the object store: %w", err)
			}
		}
		if keys.Endpoint == "" {
			keys.Endpoint = "https://" + keys.AccountID + ".r2.cloudflarestorage.com"
		}
		if keys.Region == "" {
			keys.Region = regionAuto
		}
		return keys, nil
	}
}

// resolver sends each request to the endpoint of the current keys and sets the
// region of its signature.
type resolver struct {
	current func(context.Context) (Keys, error)
	next    s3.EndpointResolverV2

	mu    sync.Mutex
	known map[place]smithyendpoints.Endpoint
}

// place contains the parameters on which an endpoint depends. The other parameters of the rules
// are the same for all operations of this package.
type place struct{ endpoint, region, bucket string }

// maxPlaces is above the number of buckets. The keys, and with them the endpoint, rarely
// change.
const maxPlaces = 16

func newResolver(current func(context.Context) (Keys, error)) *resolver {
	return &resolver{current: current, next: s3.NewDefaultEndpointResolverV2(), known: map[place]smithyendpoints.Endpoint{}}
}

// ResolveEndpoint implements the SDK's interface. The SDK compares resolvers,
// hence the pointer.
func (r *resolver) ResolveEndpoint(ctx context.Context, params s3.EndpointParameters) (smithyendpoints.Endpoint, error) {
	keys, err := r.current(ctx)
	if err != nil {
		return smithyendpoints.Endpoint{}, err
	}
	return r.resolve(ctx, keys, params)
}

// resolve returns the endpoint for keys. The SDK's rules use regular expressions, so they are
// evaluated once for each place.
func (r *resolver) resolve(ctx context.Context, keys Keys, params s3.EndpointParameters) (smithyendpoints.Endpoint, error) {
	at := place{keys.Endpoint, keys.Region, aws.ToString(params.Bucket)}
	r.mu.Lock()
	found, ok := r.known[at]
	r.mu.Unlock()
	if ok {
		return separate(found), nil
	}
	params.Endpoint, params.Region = &keys.Endpoint, &keys.Region
	found, err := r.next.ResolveEndpoint(ctx, params)
	if err != nil {
		return found, err //nolint:wrapcheck // the SDK wraps it
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.known) >= maxPlaces {
		clear(r.known)
	}
	r.known[at] = separate(found)
	return found, nil
}

// separate returns a copy of an endpoint with its own authentication options, because the SDK
// changes them for each request.
func separate(e smithyendpoints.Endpoint) smithyendpoints.Endpoint {
	known := e.Properties
	e.Headers, e.Properties = e.Headers.Clone(), smithy.Properties{}
	e.Properties.SetAll(&known)
	shared, ok := smithyauth.GetAuthOptions(&known)
	if !ok {
		return e
	}
	own := make([]*smithyauth.Option, len(shared))
	for i, option := range shared {
		own[i] = &smithyauth.Option{SchemeID: option.SchemeID}
		own[i].IdentityProperties.SetAll(&option.IdentityProperties)
		own[i].SignerProperties.SetAll(&option.SignerProperties)
	}
	smithyauth.SetAuthOptions(&e.Properties, own)
	return e
}
