package artifacts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"time"

	"github.com/sortie-dev/sortie/shared/app/change"
	"github.com/sortie-dev/sortie/shared/base/clock"
	"github.com/sortie-dev/sortie/shared/base/limit"
	"github.com/sortie-dev/sortie/shared/domain/catalog"
	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/job"
	"github.com/sortie-dev/sortie/shared/domain/platform"
	"github.com/sortie-dev/sortie/shared/port"
)

// Models serves the catalog of models. It is safe for concurrent use.
type Models struct {
	store    ModelStore
	clock    clock.Clock
	log      *slog.Logger
	document func(m catalog.Model) ([]byte, error)
	keys     catalog.Keys
}

// ModelStore is the part of a port.Store that has the models of tenants and the pools that serve
// them.
type ModelStore interface {
	port.ResourceStore
	// PoolRecords is that of port.PoolStore.
	PoolRecords(ctx context.Context, tenant string, page port.Page) (pools []platform.Pool, next string, err error)
}

// NewModels returns the catalog in a store. document encodes a model as clients see it. keys are
// the keys whose models are trusted.
func NewModels(store ModelStore, c clock.Clock, log *slog.Logger, document func(m catalog.Model) ([]byte, error), keys catalog.Keys) *Models {
	return &Models{store, c, log, document, keys}
}

func (s *Models) now() time.Time { return clock.UTC(s.clock) }

func noModel() error {
	return fault.New(fault.ModelUnknown, "no such model, want one of GET /v1/catalog/models")
}

// Create stores an Active model and verifies its signature. strict requires the signature of a
// trusted key. existing reports that the catalog already has this model; then nothing is
// written. Faults: InvalidRequest with the field, job.DefinitionProblems with all problems of the
// definition, UntrustedArtifact, ModelExists for another definition under the id.
func (s *Models) Create(ctx context.Context, who port.Identity, id string, d catalog.Definition, strict bool) (v catalog.Stored, existing bool, err error) {
	found := d.Check()
	if !limit.ValidModel(id) {
		found = append([]*fault.Fault{fault.Invalid("id", "missing or malformed id %q, want 1 to 128 letters, digits, '.', '_', ':', '@' and '-', the first a letter or a digit", limit.Cut(id, limit.FileName))}, found...)
	}
	if len(found) > 0 {
		return v, false, job.ProblemsOf(found)
	}
	if err := s.checkShares(ctx, who.Tenant, id, d); err != nil {
		return v, false, err
	}
	now := s.now()
	v.Model = catalog.Model{
		Tenant: who.Tenant, ID: id, State: catalog.Active, Definition: d, CreatedAt: now, CreatedBy: who.Subject, UpdatedAt: now, UpdatedBy: who.Subject,
	}
	if v.Verified, err = s.verified(d, now); err != nil && strict {
		return v, false, err
	}
	err = s.save(ctx, who, nil, v)
	if errors.Is(err, port.ErrConflict) {
		stored, err := s.view(ctx, who.Tenant, id)
		if err == nil && !stored.Definition.Equal(d) {
			err = fault.New(fault.ModelExists, "the catalog has another model %s; change it with PATCH, or use another id", id)
		}
		return stored, true, err
	}
	if err != nil {
		return v, false, fmt.Errorf("cannot store the model: %w", err)
	}
	v.Version = 1
	s.log.InfoContext(ctx, "model created", "tenant", v.Tenant, "model", id, "signed", d.Signed(), "verified", v.Verified != nil, "by", who.Subject)
	return v, false, nil
}

// checkShares returns the fault of a split or of shadow traffic that names the model itself, or a model
// that the catalog does not have: InvalidRequest with the field.
func (s *Models) checkShares(ctx context.Context, tenant, id string, d catalog.Definition) error {
	for field, shares := range d.Shares() {
		for i, share := range shares {
			f := fault.Invalid(fmt.Sprintf("%s.%d.model", field, i), "unknown model %q, want another model of GET /v1/catalog/models", share.Model)
			if share.Model == id {
				return f
			}
			if _, err := s.view(ctx, tenant, share.Model); fault.Is(err, fault.ModelUnknown) {
				return f
			} else if err != nil {
				return err
			}
		}
	}
	return nil
}

// verified verifies the signature of a definition. It returns nil and the fault
// UntrustedArtifact if no trusted key has signed it.
func (s *Models) verified(d catalog.Definition, now time.Time) (*catalog.Verified, error) {
	key, err := d.Verify(s.keys)
	if err != nil {
		return nil, err
	}
	return &catalog.Verified{At: now, Key: key}, nil
}

// save writes a model with the event of its change. before is nil for a new model.
func (s *Models) save(ctx context.Context, who port.Identity, before *catalog.Stored, after catalog.Stored) error {
	note, err := s.note(ctx, who, before, &after)
	if err != nil {
		return err
	}
	r, err := after.Resource()
	if err != nil {
		return err
	}
	return s.store.WriteResources(ctx, []port.Resource{r}, nil, note)
}

// view reads a model. Fault: ModelUnknown.
func (s *Models) view(ctx context.Context, tenant, id string) (catalog.Stored, error) {
	if !limit.ValidModel(id) {
		return catalog.Stored{}, noModel()
	}
	r, err := s.store.LoadResource(ctx, catalog.Ref(tenant, id))
	if errors.Is(err, port.ErrNotFound) {
		return catalog.Stored{}, noModel()
	}
	if err != nil {
		return catalog.Stored{}, fmt.Errorf("cannot read the model: %w", err)
	}
	return catalog.Decode(r)
}

// Model returns a model of the caller's tenant. Fault: ModelUnknown.
func (s *Models) Model(ctx context.Context, who port.Identity, id string) (catalog.Stored, error) {
	return s.view(ctx, who.Tenant, id)
}

// Admit returns the model that a task of a tenant names, if tasks may use it. strict
// requires the signature of a key that the deployment trusts now. Faults: ModelUnknown,
// PoolUnavailable for a retired model, UntrustedArtifact.
func (s *Models) Admit(ctx context.Context, tenant, ref string, strict bool) (catalog.Model, error) {
	v, err := s.view(ctx, tenant, ref)
	if err != nil {
		return catalog.Model{}, err
	}
	return v.Model, v.Admit(strict, s.keys)
}

// List returns a page of the models of the caller's tenant that the filter selects, the newest
// first. A page may be short or empty although more models follow.
func (s *Models) List(ctx context.Context, who port.Identity, f catalog.Filter, page port.Page) (models []catalog.Stored, next string, err error) {
	found, next, err := s.store.Resources(ctx, who.Tenant, catalog.Kind, f.Label(), page)
	if err != nil {
		return nil, "", fmt.Errorf("cannot list the models: %w", err)
	}
	for _, r := range found {
		v, err := catalog.Decode(r)
		if err != nil {
			return nil, "", err
		}
		if f.Selects(v.Model) {
			models = append(models, v)
		}
	}
	return models, next, nil
}

// Change replaces the definition of a model by the result of decide, and verifies the new
// signature. strict requires the signature of a trusted key. Faults: ModelUnknown,
// PreconditionFailed, those of decide and of Create.
func (s *Models) Change(
	ctx context.Context, who port.Identity, id string, required change.Precondition, strict bool, decide func(catalog.Definition) (catalog.Definition, error),
) (catalog.Stored, error) {
	return s.change(ctx, who, id, required, func(v catalog.Stored) (catalog.Stored, error) {
		d, err := decide(v.Definition)
		if err != nil {
			return v, err
		}
		if found := d.Check(); len(found) > 0 {
			return v, job.ProblemsOf(found)
		}
		if err := s.checkShares(ctx, who.Tenant, id, d); err != nil {
			return v, err
		}
		same := d.Digest == v.Digest && string(d.Signature) == string(v.Signature) && v.Verified != nil
		v.Definition = d
		verified, err := s.verified(d, s.now())
		if !same || err != nil {
			v.Verified = verified
		}
		if strict {
			return v, err
		}
		return v, nil
	})
}

// SetState sets the state of a model. It is idempotent. Faults: ModelUnknown,
// PreconditionFailed.
func (s *Models) SetState(ctx context.Context, who port.Identity, id string, to catalog.State, required change.Precondition) (catalog.Stored, error) {
	return s.change(ctx, who, id, required, func(v catalog.Stored) (catalog.Stored, error) {
		v.State = to
		return v, nil
	})
}

// Verify verifies the signature of a model with the keys that the deployment trusts now, and
// stores the result. why is the fault UntrustedArtifact, or nil if the signature matches.
// Faults: ModelUnknown, PreconditionFailed.
func (s *Models) Verify(ctx context.Context, who port.Identity, id string, required change.Precondition) (v catalog.Stored, why, err error) {
	v, err = s.change(ctx, who, id, required, func(v catalog.Stored) (catalog.Stored, error) {
		v.Verified, why = s.verified(v.Definition, s.now())
		return v, nil
	})
	return v, why, err
}

// change applies decide to the stored model and saves the result. It repeats both after a
// conflict.
func (s *Models) change(ctx context.Context, who port.Identity, id string, required change.Precondition, decide func(catalog.Stored) (catalog.Stored, error)) (catalog.Stored, error) {
	for range port.CommitTries {
		stored, err := s.Model(ctx, who, id)
		if err == nil {
			err = required.Check("model", stored.Tag())
		}
		if err != nil {
			return catalog.Stored{}, err
		}
		v, err := decide(stored)
		if err != nil {
			return catalog.Stored{}, err
		}
		if reflect.DeepEqual(v, stored) {
			return v, nil
		}
		v.UpdatedAt, v.UpdatedBy = s.now(), who.Subject
		err = s.save(ctx, who, &stored, v)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return catalog.Stored{}, fmt.Errorf("cannot store the model: %w", err)
		}
		v.Version++
		s.log.InfoContext(ctx, "model changed", "tenant", v.Tenant, "model", v.ID, "version", v.Version, "state", v.State, "verified", v.Verified != nil, "by", who.Subject)
		return v, nil
	}
	return catalog.Stored{}, tooManyModelChanges()
}

func tooManyModelChanges() error {
	return fault.New(fault.Unavailable, "too many concurrent changes of the model; retry")
}

// Delete removes a model. Faults: ModelUnknown, PreconditionFailed, ModelInUse for one that
// a pool serves.
func (s *Models) Delete(ctx context.Context, who port.Identity, id string, required change.Precondition) error {
	for range port.CommitTries {
		v, err := s.Model(ctx, who, id)
		if err == nil {
			err = required.Check("model", v.Tag())
		}
		if err == nil {
			err = s.unused(ctx, who.Tenant, id)
		}
		if err != nil {
			return err
		}
		note, err := s.note(ctx, who, &v, nil)
		if err != nil {
			return err
		}
		r, err := v.Resource()
		if err != nil {
			return err
		}
		err = s.store.WriteResources(ctx, nil, []port.Resource{r}, note)
		if errors.Is(err, port.ErrConflict) {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot delete the model: %w", err)
		}
		s.log.InfoContext(ctx, "model deleted", "tenant", who.Tenant, "model", id, "by", who.Subject)
		return nil
	}
	return tooManyModelChanges()
}

// poolPage is the page size of a list of pools.
const poolPage = 1000

// unused returns a fault if a pool serves the model. A pool that is created meanwhile
// admits no task.
func (s *Models) unused(ctx context.Context, tenant, id string) error {
	for page := (port.Page{Limit: poolPage}); ; {
		stored, next, err := s.store.PoolRecords(ctx, tenant, page)
		if err != nil {
			return fmt.Errorf("cannot list the pools: %w", err)
		}
		for _, p := range stored {
			if p.Engine != nil && p.Engine.Model == id {
				return fault.New(fault.ModelInUse, "the pool %s serves the model; want a model that no pool serves", p.ID)
			}
		}
		if page.Cursor = next; next == "" {
			return nil
		}
	}
}

// note returns the event of a change of a model. before is nil for a new model, after for a
// deleted one.
func (s *Models) note(ctx context.Context, who port.Identity, before, after *catalog.Stored) (note port.Note, err error) {
	of := after
	if after == nil {
		of = before
	}
	c := change.Resource{
		Tenant: of.Tenant, Kind: catalog.Kind, ID: of.ID, Version: of.Version + 1, Revision: of.Version + 1, Created: of.CreatedAt,
	}
	if before != nil {
		c.Before, err = s.document(before.Model)
	}
	if err == nil && after != nil {
		c.After, err = s.document(after.Model)
	}
	if err != nil {
		return port.Note{}, fmt.Errorf("cannot encode model %s: %w", of.ID, err)
	}
	return c.Note(ctx, who.Actor(), s.now())
}
