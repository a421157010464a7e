package awsfake

import (
	"context"
	"net/url"
	"slices"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// needed has the parts of an SDK call that the fakes need, besides those that validate and
// encode the input. The fakes verify no signatures, have one endpoint each, and lose no bytes.
// The other parts need more time than a fake's answer.
var needed = []string{"Retry", "AddRawResponseToMetadata", "ResponseErrorWrapper", "OperationDeserializer"}

// lean removes the parts of a client's calls that the fakes do not need.
func lean(endpoint string) func(*middleware.Stack) error {
	return func(s *middleware.Stack) error {
		s.Build.Clear()
		for _, id := range s.Finalize.List() {
			if !slices.Contains(needed, id) {
				if _, err := s.Finalize.Remove(id); err != nil {
					return err
				}
			}
		}
		for _, id := range s.Deserialize.List() {
			if !slices.Contains(needed, id) {
				if _, err := s.Deserialize.Remove(id); err != nil {
					return err
				}
			}
		}
		address, err := url.Parse(endpoint)
		if err != nil {
			return err
		}
		return s.Finalize.Add(middleware.FinalizeMiddlewareFunc("FakeEndpoint", func(
			ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler,
		) (middleware.FinalizeOutput, middleware.Metadata, error) {
			if r, ok := in.Request.(*smithyhttp.Request); ok {
				r.URL.Scheme, r.URL.Host = address.Scheme, address.Host
			}
			return next.HandleFinalize(ctx, in)
		}), middleware.After)
	}
}
