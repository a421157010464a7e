package capacity

import (
	"context"
	"errors"
	"time"

	"github.com/sortie-dev/sortie/shared/domain/fleet"
	"github.com/sortie-dev/sortie/shared/port"
)

// tokenTries limits how often a start tries to take a token that other starts take first.
const tokenTries = 5

// TakeToken takes a token of the shared limit of an app. It returns 0, or the time until the
// next token. An app without a documented limit needs no token.
func TakeToken(ctx context.Context, store port.LeaseStore, app fleet.StartPace, now time.Time) (wait time.Duration, err error) {
	for range tokenTries {
		limiter, err := store.StartLimiter(ctx, fleet.AppLimiter(app.App))
		if err != nil {
			return 0, err
		}
		_, after, limited, ok := limiter.Take([]fleet.StartPace{app}, now)
		switch {
		case !limited:
			return 0, nil
		case !ok:
			return max(limiter.Permit().Sub(now), time.Millisecond), nil
		}
		if err = store.SetStartLimiter(ctx, after); !errors.Is(err, port.ErrConflict) {
			return 0, err
		}
	}
	return app.Interval, nil // many starts take tokens at the same time
}
