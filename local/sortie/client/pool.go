package client

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/shared/wire/contract"
)

// Pool is a pool with its entity tag.
type Pool struct {
	contract.Pool
	Tag string `json:"-"`
}

// Pools reads the pools, ordered by id. It returns an empty list if the server does not support
// pools.
func (c *Client) Pools(ctx context.Context) (contract.PoolList, error) {
	list := contract.PoolList{Pools: []contract.Pool{}}
	_, err := c.do(ctx, call{method: http.MethodGet, path: "v1/pools", repeat: true}, &list)
	if p, ok := errors.AsType[*Problem](err); ok && p.Status == http.StatusNotFound {
		return list, nil
	}
	return list, err
}

// Pool reads a pool.
func (c *Client) Pool(ctx context.Context, id string) (Pool, error) {
	return c.pool(ctx, call{method: http.MethodGet, path: poolPath(id), repeat: true})
}

// PoolGuests reads the guests of a pool, with their use of a day in UTC; an empty day is today.
func (c *Client) PoolGuests(ctx context.Context, id, day string) (g contract.PoolGuests, err error) {
	asked := call{method: http.MethodGet, path: poolPath(id, "guests"), repeat: true}
	if day != "" {
		asked.query = url.Values{"day": {day}}
	}
	_, err = c.do(ctx, asked, &g)
	return g, err
}

// PutPool sets the limits of a pool if the stored pool has the tag; an empty tag requires
// that the pool does not exist.
func (c *Client) PutPool(ctx context.Context, id string, limits contract.PoolDefinition, tag string) (Pool, error) {
	header := http.Header{"If-None-Match": {"*"}}
	if tag != "" {
		header = http.Header{"If-Match": {tag}}
	}
	return c.pool(ctx, call{method: http.MethodPut, path: poolPath(id), header: header, body: limits})
}

// DrainPool stops the admission of runs to a pool.
func (c *Client) DrainPool(ctx context.Context, id string, drain contract.PoolDrain) (Pool, error) {
	return c.pool(ctx, call{method: http.MethodPost, path: poolPath(id, "drain"), body: drain, repeat: true})
}

// ResumePool restarts the admission of runs.
func (c *Client) ResumePool(ctx context.Context, id string) (Pool, error) {
	return c.pool(ctx, call{method: http.MethodPost, path: poolPath(id, "resume"), body: struct{}{}, repeat: true})
}

// ReloadPool makes a pool of an engine serve a model. It is not retried, because the call waits
// for the reload.
func (c *Client) ReloadPool(ctx context.Context, id string, reload contract.PoolReload) (Pool, error) {
	return c.pool(ctx, call{method: http.MethodPost, path: poolPath(id, "reload"), body: reload})
}

// DeletePool removes a pool.
func (c *Client) DeletePool(ctx context.Context, id string) error {
	_, err := ask[[]byte](ctx, c, call{method: http.MethodDelete, path: poolPath(id)})
	return err
}

// PoolHealth reads the state of a pool.
func (c *Client) PoolHealth(ctx context.Context, id string) (contract.PoolHealth, error) {
	return ask[contract.PoolHealth](ctx, c, call{method: http.MethodGet, path: poolPath(id, "health"), repeat: true})
}

func (c *Client) pool(ctx context.Context, what call) (Pool, error) {
	var pool Pool
	header, err := c.do(ctx, what, &pool)
	if err == nil {
		pool.Tag = header.Get("ETag")
	}
	return pool, err
}

func poolPath(id string, more ...string) string {
	path := "v1/pools/" + url.PathEscape(id)
	for _, part := range more {
		path += "/" + part
	}
	return path
}
