// Package secrets reads what Sortie keeps in AWS Secrets Manager: the tokens of
// clients, the token of the Machines API, and the keys to the outputs. Each is
// one secret with one JSON document.
//
// The package promises that a secret costs one call in five minutes, that a
// rotated one is in use within that time, or ten seconds after somebody was
// refused with the old one, and that an outage of Secrets Manager is not felt
// by who has a value. It refuses a document that is not whole. No error and no
// log line of it has a value, or a part of one.
package secrets

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"

	"github.com/sortie-dev/sortie/shared/clock"
	"github.com/sortie-dev/sortie/shared/fault"
)

// DefaultTTL is how long a value is used before it is read again.
const DefaultTTL = 5 * time.Minute

// readPause is the shortest time between two reads of one secret, whoever was
// refused and however often.
const readPause = 10 * time.Second

// readLimit is how long a reader who has a value waits for a newer one.
const readLimit = 3 * time.Second

// Config says how secrets are read.
type Config struct {
	// TTL is how long a value is used before it is read again; 0 is DefaultTTL.
	TTL   time.Duration
	Clock clock.Clock
	// Log is told when an old value is used for want of a newer one.
	Log *slog.Logger
}

// Secret is one secret, with its document in memory once it was read. It is safe
// for use by many goroutines.
type Secret[D Document] struct {
	client *secretsmanager.Client
	id     string
	config Config
	// known has what is in memory; who takes it out puts it back.
	known chan known[D]
}

type known[D Document] struct {
	document D
	// has says that there is a document, of the time readAt.
	has    bool
	readAt time.Time
	// triedAt is when it was read last, well or not.
	triedAt time.Time
	refused bool
}

// Open gives the secret with this name or ARN. It makes no call.
func Open[D Document](cfg aws.Config, id string, config Config) (*Secret[D], error) {
	var problems []error
	if id == "" {
		problems = append(problems, errors.New("its name is missing"))
	}
	if config.TTL < 0 {
		problems = append(problems, errors.New("its time to live is negative"))
	}
	if config.Clock == nil {
		problems = append(problems, errors.New("the clock is missing"))
	}
	if config.Log == nil {
		problems = append(problems, errors.New("the logger is missing"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, fmt.Errorf("cannot use the secret of the %s: %w", kindOf[D](), err)
	}
	if config.TTL == 0 {
		config.TTL = DefaultTTL
	}
	s := &Secret[D]{secretsmanager.NewFromConfig(cfg), id, config, make(chan known[D], 1)}
	s.known <- known[D]{}
	return s, nil
}

// Get gives the document: from memory, or read where that is too old. A failure
// is an Unavailable fault; whoever has read the secret before gets the old
// document instead.
func (s *Secret[D]) Get(ctx context.Context) (D, error) {
	var k known[D]
	select {
	case k = <-s.known:
	case <-ctx.Done():
		return k.document, fault.Wrap(ctx.Err(), fault.Unavailable, "a secret was not read in time")
	}
	defer func() { s.known <- k }()
	now := s.config.Clock.Now()
	fresh := k.has && !k.refused && now.Before(k.readAt.Add(s.config.TTL))
	if fresh || k.has && now.Before(k.triedAt.Add(readPause)) {
		return k.document, nil
	}
	k.triedAt = now
	if k.has {
		limited, cancel := context.WithTimeout(ctx, readLimit)
		defer cancel()
		ctx = limited
	}
	document, err := s.read(ctx)
	if err == nil {
		k.document, k.has, k.readAt, k.refused = document, true, now, false
		return document, nil
	}
	if !k.has {
		return document, fault.Wrap(err, fault.Unavailable, "a secret that this needs cannot be read now")
	}
	s.config.Log.WarnContext(ctx, "a secret cannot be read; its last value is used", "secret", nameOf(s.id), "error", err.Error())
	return k.document, nil
}

// Refused says that somebody did not take what the document has, so that it may
// have been rotated: the next Get reads it anew.
func (s *Secret[D]) Refused() {
	k := <-s.known
	k.refused = true
	s.known <- k
}

func (s *Secret[D]) read(ctx context.Context) (D, error) {
	var none D
	answer, err := s.client.GetSecretValue(ctx, &secretsmanager.GetSecretValueInput{SecretId: &s.id})
	if _, absent := errors.AsType[*types.ResourceNotFoundException](err); absent || err == nil && aws.ToString(answer.SecretString) == "" {
		return none, fmt.Errorf("the secret %s was never filled; %q does it", nameOf(s.id), hint[D](s.id))
	}
	if err != nil {
		return none, fmt.Errorf("cannot read the secret %s: %w", nameOf(s.id), err)
	}
	var document D
	if err = json.Unmarshal([]byte(*answer.SecretString), &document); err != nil {
		err = unreadable(err)
	} else {
		err = errors.Join(document.problems()...)
	}
	if err != nil {
		return none, fmt.Errorf("the secret %s is not usable; %q replaces it: %w", nameOf(s.id), hint[D](s.id), err)
	}
	return document, nil
}

// unreadable tells what is wrong with a text and not what is in it.
func unreadable(err error) error {
	if field, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && field.Field != "" {
		return fmt.Errorf("%s is not of its type", field.Field)
	}
	return errors.New("it is no JSON document of its kind")
}
