package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// trust returns a header that requires a trusted signature of the model, if strict is true.
func trust(strict bool) http.Header {
	if !strict {
		return nil
	}
	return http.Header{"X-Trust-Policy": {"strict"}}
}

// CreateModel adds a model to the catalog. With strict, a trusted key must have signed it.
// It is safe to repeat.
func (c *Client) CreateModel(ctx context.Context, in contract.ModelRequest, strict bool) (contract.Model, error) {
	return ask[contract.Model](ctx, c, call{method: http.MethodPost, path: "v1/catalog/models", header: trust(strict), body: in, repeat: true})
}

// Models reads a page of the models that match the query, the newest first.
func (c *Client) Models(ctx context.Context, query url.Values) (contract.ModelList, error) {
	return ask[contract.ModelList](ctx, c, call{method: http.MethodGet, path: "v1/catalog/models", query: query, repeat: true})
}

// Model reads a model.
func (c *Client) Model(ctx context.Context, id string) (contract.Model, error) {
	return ask[contract.Model](ctx, c, call{method: http.MethodGet, path: modelPath(id), repeat: true})
}

// VerifyModel verifies the signature of a model with the keys that the server trusts.
func (c *Client) VerifyModel(ctx context.Context, id string) (contract.ModelVerification, error) {
	return ask[contract.ModelVerification](ctx, c, call{method: http.MethodPost, path: modelPath(id) + "/verify", body: struct{}{}, repeat: true})
}

// SetModelState sets the state of a model.
func (c *Client) SetModelState(ctx context.Context, id, state string) (contract.Model, error) {
	return ask[contract.Model](ctx, c, call{method: http.MethodPost, path: modelPath(id) + "/state", body: contract.ModelStateRequest{State: state}, repeat: true})
}

// SplitModel replaces the shares of a model's tasks that other models serve; without shares the model
// serves all.
func (c *Client) SplitModel(ctx context.Context, id string, shares []contract.ModelShare) (contract.Model, error) {
	body := map[string][]contract.ModelShare{"split": append([]contract.ModelShare{}, shares...)}
	return ask[contract.Model](ctx, c, call{method: http.MethodPatch, path: modelPath(id), body: body, repeat: true})
}

// ShadowModel replaces the shares of a model's tasks that are copied to other models; without shares
// none are.
func (c *Client) ShadowModel(ctx context.Context, id string, shares []contract.ModelShare) (contract.Model, error) {
	body := map[string][]contract.ModelShare{"shadow": append([]contract.ModelShare{}, shares...)}
	return ask[contract.Model](ctx, c, call{method: http.MethodPatch, path: modelPath(id), body: body, repeat: true})
}

// DeleteModel removes a model.
func (c *Client) DeleteModel(ctx context.Context, id string) error {
	_, err := ask[[]byte](ctx, c, call{method: http.MethodDelete, path: modelPath(id)})
	return err
}

func modelPath(id string) string { return "v1/catalog/models/" + url.PathEscape(id) }
