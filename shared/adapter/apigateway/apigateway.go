// Package apigateway sends to the connections of a WebSocket API of Amazon API Gateway,
// through its Management API.
package apigateway

import (
	"context"
	"errors"
	"fmt"
	"net/url"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi"
	"github.com/aws/aws-sdk-go-v2/service/apigatewaymanagementapi/types"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/port"
)

// Sockets sends to the connections of one stage. It is safe for concurrent use.
type Sockets struct {
	client *apigatewaymanagementapi.Client
}

var _ port.Sockets = (*Sockets)(nil)

// New returns the Sockets of the stage with a URL:
// https://API.execute-api.REGION.amazonaws.com/STAGE. It makes no call.
func New(cfg aws.Config, stage string) (*Sockets, error) {
	u, err := url.Parse(stage)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return nil, errors.New("malformed URL of a WebSocket API, want https://API.execute-api.REGION.amazonaws.com/STAGE")
	}
	return &Sockets{apigatewaymanagementapi.NewFromConfig(cfg, func(o *apigatewaymanagementapi.Options) {
		o.BaseEndpoint = &stage
		o.Retryer = aws.NopRetryer{} // the caller decides
	})}, nil
}

// Send implements port.Sockets.
func (s *Sockets) Send(ctx context.Context, id string, message []byte) error {
	_, err := s.client.PostToConnection(ctx, &apigatewaymanagementapi.PostToConnectionInput{ConnectionId: &id, Data: message})
	return wrap(err, "send to")
}

// Disconnect implements port.Sockets.
func (s *Sockets) Disconnect(ctx context.Context, id string) error {
	_, err := s.client.DeleteConnection(ctx, &apigatewaymanagementapi.DeleteConnectionInput{ConnectionId: &id})
	if err = wrap(err, "close"); errors.Is(err, port.ErrGone) {
		return nil
	}
	return err
}

func wrap(err error, doing string) error {
	if err == nil {
		return nil
	}
	if _, gone := errors.AsType[*types.GoneException](err); gone {
		return port.ErrGone
	}
	if _, large := errors.AsType[*types.PayloadTooLargeException](err); large {
		return fault.Wrap(err, fault.Internal, "the message is too large for the gateway")
	}
	return fault.Wrap(fmt.Errorf("cannot %s a connection: %w", doing, err), fault.Unavailable, "the gateway of WebSockets is unavailable")
}
