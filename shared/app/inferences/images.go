package inferences

import (
	"context"
	"fmt"
	"io"

	"github.com/sortie-dev/sortie/shared/domain/fault"
	"github.com/sortie-dev/sortie/shared/domain/inference"
	"github.com/sortie-dev/sortie/shared/domain/run"
	"github.com/sortie-dev/sortie/shared/port"
)

// withImages reads the images of a request that are artifacts of the tenant. Fault: InvalidParams with
// the field of one that does not exist or is no image.
func (s *Inference) withImages(ctx context.Context, r run.Run, q *inference.Request) error {
	return q.StoredImages(func(field string, i *port.Image) error { return s.readImage(ctx, r.Tenant, field, i) })
}

// checkImages returns the fault of the first image of a request that is no artifact of the caller's
// tenant, or has another type or size than an image, by its record.
func (s *Inference) checkImages(ctx context.Context, in NewTask) error {
	return in.Request.StoredImages(func(field string, i *port.Image) error {
		found, err := s.transcripts.Record(ctx, in.Identity, i.Artifact)
		if fault.Is(err, fault.NotFound) {
			return noImage(field, i)
		}
		if err != nil {
			return fmt.Errorf("cannot check an image: %w", err)
		}
		return inference.CheckImageKind(field, found.Type(), found.Size)
	})
}

func noImage(field string, i *port.Image) error {
	return invalidParams(field, "the artifact %s does not exist, or has expired", i.Artifact)
}

// readImage reads the artifact of an image.
func (s *Inference) readImage(ctx context.Context, tenant, field string, i *port.Image) error {
	found, content, err := s.transcripts.Artifact(ctx, port.Identity{Tenant: tenant}, i.Artifact)
	if fault.Is(err, fault.NotFound) {
		return noImage(field, i)
	}
	if err != nil {
		return fmt.Errorf("cannot read an image: %w", err)
	}
	defer func() { _ = content.Close() }() // it was read as far as required
	if i.Data, err = io.ReadAll(io.LimitReader(content, inference.ImageSize+1)); err != nil {
		return fmt.Errorf("cannot read an image: %w", err)
	}
	i.MediaType = found.MediaType
	return inference.CheckImage(field, *i)
}

// needImages returns the fault of a replica whose model reads no images.
func needImages(t *serving, q *inference.Request) error {
	if can := t.replica.Capabilities().Images; q.Images() > 0 && can != nil && !*can {
		return invalidParams("messages", "the model of the engine reads no images, want messages without them")
	}
	return nil
}
