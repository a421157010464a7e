package r2

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	smithyauth "github.com/aws/smithy-go/auth"
	smithyendpoints "github.com/aws/smithy-go/endpoints"
)

// TestRequestsShareNoEndpoint checks that requests do not share an endpoint. The SDK changes
// the options of the endpoint that it gets.
func TestRequestsShareNoEndpoint(t *testing.T) {
	t.Parallel()
	r := newResolver(func(context.Context) (Keys, error) {
		return Keys{Endpoint: "http://127.0.0.1:9000", Region: regionAuto}, nil
	})
	resolve := func() (smithyendpoints.Endpoint, []*smithyauth.Option) {
		t.Helper()
		e, err := r.ResolveEndpoint(t.Context(), s3.EndpointParameters{Bucket: aws.String("uploads"), ForcePathStyle: aws.Bool(true)})
		if err != nil {
			t.Fatal(err)
		}
		options, ok := smithyauth.GetAuthOptions(&e.Properties)
		if !ok || len(options) == 0 {
			t.Fatal("got no options of authentication, want those of the SDK's rules")
		}
		return e, options
	}
	type changed struct{}
	_, want := resolve()
	scheme := want[0].SchemeID
	for range 3 { // the first one is not cached
		e, options := resolve()
		if options[0].SchemeID != scheme || options[0].SignerProperties.Has(changed{}) || options[0].IdentityProperties.Has(changed{}) || e.Properties.Has(changed{}) {
			t.Error("got the changes of another request, want none")
		}
		if len(options[0].SignerProperties.Values()) != len(want[0].SignerProperties.Values()) {
			t.Errorf("got the properties %v of the signer, want %v", options[0].SignerProperties.Values(), want[0].SignerProperties.Values())
		}
		options[0].SchemeID = "changed"
		options[0].SignerProperties.Set(changed{}, true)
		options[0].IdentityProperties.Set(changed{}, true)
		e.Properties.Set(changed{}, true)
	}
}
