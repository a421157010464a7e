package registry

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"github.com/sortie-dev/sortie/shared/app/artifacts"
	"github.com/sortie-dev/sortie/shared/domain/access"
	"github.com/sortie-dev/sortie/shared/domain/artifact"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
	"github.com/sortie-dev/sortie/shared/wire/api"
	"github.com/sortie-dev/sortie/shared/wire/contract"
	"github.com/sortie-dev/sortie/shared/wire/httpkit"
)

// CatalogRoutes returns the routes of the catalog of models. A change is committed before
// the response, and conditional on If-Match.
func CatalogRoutes(svc *artifacts.Models) []httpkit.Route {
	const model = "/v1/catalog/models/{model_id}"
	route := httpkit.ClientRoutes(svc)
	return []httpkit.Route{
		route(http.MethodPost, "/v1/catalog/models", access.Admin, createModel),
		route(http.MethodGet, "/v1/catalog/models", access.RunsRead, listModels, "cursor", "limit", "engine", "tag", "state"),
		route(http.MethodGet, model, access.RunsRead, getModel),
		route(http.MethodPatch, model, access.Admin, patchModel),
		route(http.MethodDelete, model, access.Admin, removeModel),
		route(http.MethodPost, model+"/verify", access.Admin, verifyModel),
		route(http.MethodPost, model+"/state", access.Admin, setModelState),
	}
}

// answerModel writes a model and its entity tag.
func answerModel(w http.ResponseWriter, status int, v catalog.Stored) error {
	w.Header().Set("ETag", v.Tag())
	return httpkit.WriteJSON(w, status, api.Model(v.Model))
}

func createModel(svc *artifacts.Models, w http.ResponseWriter, r *http.Request) error {
	trusted, err := httpkit.StrictTrust(r)
	if err != nil {
		return err
	}
	document, err := httpkit.ReadDocument(w, r, catalog.MaxSize, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	var body contract.ModelRequest
	if err := httpkit.ParseJSON(document, &body); err != nil {
		return err
	}
	d, err := api.ModelDefinition(body.ModelSettings)
	if err != nil {
		return err
	}
	ctx, who, _ := httpkit.Request(r, "model_id")
	v, existing, err := svc.Create(ctx, who, body.ID, d, trusted)
	if err != nil {
		return fmt.Errorf("cannot create the model: %w", err)
	}
	status := http.StatusCreated
	if existing {
		status = http.StatusOK
	}
	w.Header().Set("Location", "/v1/catalog/models/"+url.PathEscape(v.ID))
	return answerModel(w, status, v)
}

func listModels(svc *artifacts.Models, w http.ResponseWriter, r *http.Request) error {
	most, err := httpkit.IntQuery(r, "limit", 1, pageLimit, pageDefault)
	if err != nil {
		return err
	}
	query := r.URL.Query()
	filter := catalog.Filter{Engine: platform.EngineKind(query.Get("engine")), Tag: query.Get("tag")}
	switch {
	case query.Has("engine") && !slices.Contains(platform.EngineKinds(), filter.Engine):
		return fault.Invalid("engine", "unknown engine %.40q, want one of %v", filter.Engine, platform.EngineKinds())
	case query.Has("tag") && !artifact.ValidTag(filter.Tag):
		return fault.Invalid("tag", "malformed tag, want 1 to %d printable ASCII characters without spaces", artifact.MaxTag)
	case query.Has("state"):
		if filter.State, err = catalog.ParseState(query.Get("state")); err != nil {
			return err
		}
	}
	ctx, who, _ := httpkit.Request(r, "model_id")
	found, next, err := svc.List(ctx, who, filter, port.Page{Cursor: query.Get("cursor"), Limit: most})
	if err != nil {
		return fmt.Errorf("cannot list the models: %w", err)
	}
	page := contract.ModelList{Models: make([]contract.Model, len(found)), NextCursor: next}
	for i, v := range found {
		page.Models[i] = api.Model(v.Model)
	}
	return httpkit.WriteJSON(w, http.StatusOK, page)
}

func getModel(svc *artifacts.Models, w http.ResponseWriter, r *http.Request) error {
	v, err := svc.Model(httpkit.Request(r, "model_id"))
	if err != nil {
		return fmt.Errorf("cannot read the model: %w", err)
	}
	return answerModel(w, http.StatusOK, v)
}

func patchModel(svc *artifacts.Models, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	trusted, err := httpkit.StrictTrust(r)
	if err != nil {
		return err
	}
	document, err := httpkit.ReadDocument(w, r, catalog.MaxSize, httpkit.TypePatch, httpkit.TypeJSON)
	if err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "model_id")
	v, err := svc.Change(ctx, who, id, required, trusted, func(stored catalog.Definition) (catalog.Definition, error) {
		return api.PatchModel(stored, document, httpkit.ParseJSON)
	})
	if err != nil {
		return fmt.Errorf("cannot change the model: %w", err)
	}
	return answerModel(w, http.StatusOK, v)
}

func removeModel(svc *artifacts.Models, w http.ResponseWriter, r *http.Request) error {
	return httpkit.Remove(w, r, "model", r.PathValue("model_id"), svc.Delete)
}

func verifyModel(svc *artifacts.Models, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	trusted, err := httpkit.StrictTrust(r)
	if err != nil {
		return err
	}
	if err := httpkit.DecodeOptionalJSON(w, r, &struct{}{}); err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "model_id")
	v, why, err := svc.Verify(ctx, who, id, required)
	if err != nil {
		return fmt.Errorf("cannot verify the model: %w", err)
	}
	if trusted && why != nil {
		return why
	}
	w.Header().Set("ETag", v.Tag())
	return httpkit.WriteJSON(w, http.StatusOK, api.ModelVerification(v, why))
}

func setModelState(svc *artifacts.Models, w http.ResponseWriter, r *http.Request) error {
	required, err := httpkit.Precondition(r)
	if err != nil {
		return err
	}
	var body contract.ModelStateRequest
	if err := httpkit.DecodeJSON(w, r, &body); err != nil {
		return err
	}
	state, err := catalog.ParseState(body.State)
	if err != nil {
		return err
	}
	ctx, who, id := httpkit.Request(r, "model_id")
	v, err := svc.SetState(ctx, who, id, state, required)
	if err != nil {
		return fmt.Errorf("cannot set the state of the model: %w", err)
	}
	return answerModel(w, http.StatusOK, v)
}
