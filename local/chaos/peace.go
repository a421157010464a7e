package chaos

import (
	"context"
	"errors"

	"github.com/sortie-dev/sortie/shared/orchestrator"
)

// imprint is what two equal files have in common.
type imprint struct {
	size int64
	sum  string
}

// Peace has the prints of all files as they are made when nobody is killed.
type Peace struct{ prints map[order]imprint }

// Peaceful makes every file that can be ordered, in the empty folder. foreign is
// as Config has it.
func Peaceful(ctx context.Context, folder string, clock orchestrator.Clock, foreign []string) (Peace, error) {
	w, err := newWorld(Config{Folder: folder, Clock: clock, Foreign: foreign, Peace: Peace{map[order]imprint{}}})
	if err != nil {
		return Peace{}, err
	}
	defer w.close()
	if err := w.server.up(ctx); err != nil {
		return Peace{}, errors.Join(err, errors.New(w.log.String()))
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
			w.config.Peace.prints[o], ok = w.printOf(ctx, task)
		}
		if !ok {
			return Peace{}, errors.New("there is no file of " + o.String() + ":\n" + w.story.String() + w.log.String())
		}
	}
	return w.config.Peace, nil
}
