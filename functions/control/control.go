// Package control serves /v1/pools, with the runners, engines and limits of pools, their drain
// and their state. It also serves /v1/capabilities, the capabilities of the engines.
//
// A change is committed before the response, and conditional on If-Match and
// If-None-Match.
package control

import (
	"fmt"
	"net/http"

	"github.com/sortie-dev/sortie/shared/app/pools"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// Routes returns the routes of pools.
func Routes(svc *pools.Pools) []httpkit.Route {
	route := httpkit.ClientRoutes(svc)
	return []httpkit.Route{
		route(http.MethodGet, "/v1/capabilities", access.RunsRead, capabilities),
		route(http.MethodGet, "/v1/pools", access.RunsRead, list),
		route(http.MethodPut, "/v1/pools/{pool_id}", access.Admin, put),
		route(http.MethodGet, "/v1/pools/{pool_id}", access.RunsRead, get),
		route(http.MethodDelete, "/v1/pools/{pool_id}", access.Admin, remove),
		route(http.MethodPost, "/v1/pools/{pool_id}/drain", access.Admin, drain),
		route(http.MethodPost, "/v1/pools/{pool_id}/resume", access.Admin, resume),
		route(http.MethodPost, "/v1/pools/{pool_id}/reload", access.Admin, reload),
		route(http.MethodGet, "/v1/pools/{pool_id}/health", access.RunsRead, health),
		route(http.MethodGet, "/v1/pools/{pool_id}/guests", access.RunsRead, guests, "day"),
	}
}

// answer writes a pool and its entity tag.
func answer(w http.ResponseWriter, status int, v pools.View) error {
	w.Header().Set("ETag", pools.Tag(v.Pool))
	return httpkit.WriteJSON(w, status, api.Pool(v))
}

func list(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	views, err := svc.Pools(r.Context(), httpkit.CallerOf(r.Context()))
	if err != nil {
		return fmt.Errorf("cannot list the pools: %w", err)
	}
	found := contract.PoolList{Pools: make([]contract.Pool, len(views))}
	for i, v := range views {
		found.Pools[i] = api.Pool(v)
	}
	return httpkit.WriteJSON(w, http.StatusOK, found)
}

func capabilities(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	engines, err := svc.Capabilities(r.Context(), httpkit.CallerOf(r.Context()))
	if err != nil {
		return fmt.Errorf("cannot read the capabilities: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.Capabilities(engines))
}

func put(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	var body contract.PoolDefinition
	if err := httpkit.DecodeJSON(w, r, &body); err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "pool_id")
	v, created, err := svc.Put(ctx, who, id, api.PoolDefinition(id, body), required)
	if err != nil {
		return fmt.Errorf("cannot store the pool: %w", err)
	}
	status := http.StatusOK
	if created {
		status = http.StatusCreated
		w.Header().Set("Location", "/v1/pools/"+v.ID)
	}
	return answer(w, status, v)
}

func get(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	v, err := svc.Pool(httpkit.Request(r, "pool_id"))
	if err != nil {
		return fmt.Errorf("cannot read the pool: %w", err)
	}
	return answer(w, http.StatusOK, v)
}

func remove(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	return httpkit.Remove(w, r, "pool", r.PathValue("pool_id"), svc.Delete)
}

func drain(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	var body contract.PoolDrain
	if err := httpkit.DecodeOptionalJSON(w, r, &body); err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "pool_id")
	v, err := svc.Drain(ctx, who, id, body.DeadlineSeconds, required)
	if err != nil {
		return fmt.Errorf("cannot drain the pool: %w", err)
	}
	return answer(w, http.StatusAccepted, v)
}

func resume(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	if err := httpkit.DecodeOptionalJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "pool_id")
	v, err := svc.Resume(ctx, who, id, required)
	if err != nil {
		return fmt.Errorf("cannot resume the pool: %w", err)
	}
	return answer(w, http.StatusOK, v)
}

func reload(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	var body contract.PoolReload
	if err := httpkit.DecodeOptionalJSON(w, r, &body); err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "pool_id")
	v, err := svc.Reload(ctx, who, id, body.Model, body.DeadlineSeconds, required)
	if err != nil {
		return fmt.Errorf("cannot reload the pool: %w", err)
	}
	return answer(w, http.StatusOK, v)
}

func health(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	h, err := svc.Health(httpkit.Request(r, "pool_id"))
	if err != nil {
		return fmt.Errorf("cannot read the state of the pool: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.PoolHealth(h))
}

func guests(svc *pools.Pools, w http.ResponseWriter, r *http.Request) error {
	ctx, who, id := httpkit.Request(r, "pool_id")
	query := r.URL.Query()
	if query.Has("day") && query.Get("day") == "" {
		return fault.Invalid("day", "empty day, want a day in UTC such as 2026-11-29, or no parameter for today")
	}
	found, day, err := svc.Guests(ctx, who, id, query.Get("day"))
	if err != nil {
		return fmt.Errorf("cannot read the guests of the pool: %w", err)
	}
	return httpkit.WriteJSON(w, http.StatusOK, api.PoolGuests(found, day))
}
