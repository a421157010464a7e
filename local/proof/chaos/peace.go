package chaos

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/clock"
)

// imprint is what two equal files have in common.
type imprint struct {
	size int64
	sum  string
}

// Peace has the prints of all files as they are made when nobody is killed.
type Baseline struct{ prints map[order]imprint }

// Peaceful makes every file that can be ordered, in the empty folder. foreign is
// as Config has it.
func Peaceful(ctx context.Context, folder string, clock clock.Clock, foreign []string) (Baseline, error) {
	w, err := newWorld(Config{Folder: folder, Clock: clock, Foreign: foreign, Baseline: Baseline{map[order]imprint{}}})
	if err != nil {
		return Baseline{}, err
	}
	defer w.close()
	if err := w.server.up(ctx); err != nil {
		return Baseline{}, errors.Join(err, errors.New(w.log.String()))
	}
	for _, o := range w.orders {
		if !o.keeps() {
			continue
		}
		task, ok := w.accept(ctx, o, o.String())
		if ok {
			_, ok = w.follow(ctx, task)
		}
		if ok {
			w.config.Baseline.prints[o], ok = w.printOf(ctx, task)
		}
		if !ok {
			return Baseline{}, errors.New("there is no file of " + o.String() + ":\n" + w.story.String() + w.log.String())
		}
	}
	return w.config.Baseline, nil
}
