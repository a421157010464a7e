package suite

import (
	"net/http"
	"net/url"

	"github.com/sortie-dev/sortie/local/proof/suite/outside"
	"github.com/sortie-dev/sortie/shared/wire/contract"
)

func catalogs() []Test {
	return []Test{
		{Name: "model is added, retired and removed", Run: modelIsAdded},
		{Name: "another tenant's model is unknown", Requires: []Capability{OtherTokens}, Run: foreignModel},
	}
}

// model adds a model that no other test adds. It returns the model and its path.
func (c *Case) model(more string) (m contract.Model, path string) {
	c.T.Helper()
	id := c.Batch("model")
	m, header := send[contract.Model](c, http.MethodPost, "/v1/catalog/models", `{"id":"`+id+`","engines":["vllm"]`+more+`}`, http.StatusCreated)
	path = "/v1/catalog/models/" + url.PathEscape(id)
	if header.Get("Location") != path {
		c.T.Errorf("got Location %q, want %s", header.Get("Location"), path)
	}
	return m, path
}

func modelIsAdded(c *Case) {
	tag := "suite:" + c.Batch("tag")
	m, path := c.model(`,"tags":["` + tag + `"],"context_tokens":4096`)
	if again, _ := send[contract.Model](c, http.MethodPost, "/v1/catalog/models", `{"id":"`+m.ID+`","engines":["vllm"],"tags":["`+tag+`"],"context_tokens":4096}`, http.StatusOK); again.CreatedMS != m.CreatedMS {
		c.T.Errorf("got %+v for the same model, want %+v", again, m)
	}
	send[contract.Problem](c, http.MethodPost, "/v1/catalog/models", `{"id":"`+m.ID+`","engines":["tgi"]}`, http.StatusConflict)
	answer := c.Client.Call(http.MethodPost, "/v1/catalog/models", `{"id":"`+m.ID+`-strict","engines":["vllm"],"signed":false}`, "X-Trust-Policy", "strict")
	if answer.Status != http.StatusBadRequest || outside.Decode[contract.Problem](c.T, answer.Body).Code != "UNTRUSTED_ARTIFACT" {
		c.T.Errorf("got %d %s for an unsigned model, want 400 UNTRUSTED_ARTIFACT", answer.Status, answer.Body)
	}
	if v, _ := send[contract.ModelVerification](c, http.MethodPost, path+"/verify", "", http.StatusOK); v.Trusted || v.Reason == "" {
		c.T.Errorf("got %+v for an unsigned model, want it untrusted", v)
	}
	if retired, _ := send[contract.Model](c, http.MethodPost, path+"/state", `{"state":"Retired"}`, http.StatusOK); retired.State != "Retired" || retired.ContextTokens != 4096 {
		c.T.Errorf("got %+v, want it retired", retired)
	}
	if list := outside.Get[contract.ModelList](c.Client, "/v1/catalog/models?tag="+url.QueryEscape(tag)); len(list.Models) != 1 || list.Models[0].State != "Retired" {
		c.T.Errorf("got %+v, want the retired model", list)
	}
	if answer := c.Client.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent {
		c.T.Errorf("got %d %s for the removal, want 204", answer.Status, answer.Body)
	}
	if p, _ := send[contract.Problem](c, http.MethodGet, path, "", http.StatusNotFound); p.Code != "MODEL_UNKNOWN" {
		c.T.Errorf("got %+v, want MODEL_UNKNOWN", p)
	}
}

func foreignModel(c *Case) {
	m, path := c.model("")
	stranger := c.as(c.Target.Others.Stranger)
	if answer := stranger.Call(http.MethodGet, path, ""); answer.Status != http.StatusNotFound {
		c.T.Errorf("got %d %s for another tenant's model, want 404", answer.Status, answer.Body)
	}
	for _, other := range outside.Get[contract.ModelList](stranger, "/v1/catalog/models?limit=1000").Models {
		if other.ID == m.ID {
			c.T.Errorf("got %s in another tenant's list", m.ID)
		}
	}
	if answer := c.Client.Call(http.MethodDelete, path, ""); answer.Status != http.StatusNoContent {
		c.T.Errorf("got %d %s for the removal, want 204", answer.Status, answer.Body)
	}
}
