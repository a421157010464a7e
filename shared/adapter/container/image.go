package container

import (
	"context"
	"sync"
	"time"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/moby/moby/client"

	"github.com/sortie-dev/sortie/shared/domain/fault"
)

// pulls are the images that are being pulled, by their names.
type pulls struct {
	mu      sync.Mutex
	running map[string]*pull
}

// pull is the pull of an image. err is set before done is closed.
type pull struct {
	done chan struct{}
	err  error
}

// pullLimit is the longest time that the pull of an image may take.
const pullLimit = 30 * time.Minute

// pull pulls an image unless the engine stores it. The pull continues if ctx ends, and a
// repeated launch joins it. Faults: Image, Throttled, Unavailable.
func (r *Runner) pull(ctx context.Context, e *engine, image string) error {
	name, err := reference.ParseDockerRef(image)
	if err != nil {
		return fault.Wrap(err, fault.Image, "malformed image name %q: %v", image, err)
	}
	_, err = e.api.ImageInspect(ctx, name.String())
	if err == nil {
		return nil
	}
	if !errdefs.IsNotFound(err) {
		return failure(ctx, err, "look the image up")
	}
	p := r.join(e, name.String())
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		return fault.Wrap(ctx.Err(), fault.Unavailable, "the image %s is still being pulled", name)
	}
}

// join returns the running pull of an image, or starts one.
func (r *Runner) join(e *engine, image string) *pull {
	r.pulls.mu.Lock()
	defer r.pulls.mu.Unlock()
	if p := r.pulls.running[image]; p != nil {
		return p
	}
	p := &pull{done: make(chan struct{})}
	r.pulls.running[image] = p
	r.tasks.Go(func() {
		ctx, cancel := context.WithTimeout(r.life, pullLimit)
		defer cancel()
		r.cfg.Log.InfoContext(ctx, "pulling an image", "image", image)
		if err := fetch(ctx, e, image); err != nil {
			p.err = pullFailure(ctx, err, image)
		}
		r.pulls.mu.Lock()
		delete(r.pulls.running, image)
		r.pulls.mu.Unlock()
		close(p.done)
	})
	return p
}

// fetch pulls an image. Most failures are reported in the stream of the response.
func fetch(ctx context.Context, e *engine, image string) error {
	answer, err := e.api.ImagePull(ctx, image, client.ImagePullOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = answer.Close() }() // Wait has read it
	return answer.Wait(ctx)
}
