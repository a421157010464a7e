package client

import (
	"context"
	"iter"
)

// Pages is a list of items of type T, in pages of type P. Each iteration reads it again.
type Pages[T, P any] struct {
	fetch func(ctx context.Context, place string) (*P, error)
	split func(page *P) (items []T, next string)
}

// All returns the items of all pages. After an error the iteration ends.
func (p *Pages[T, P]) All(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for page, err := range p.Pages(ctx) {
			if err != nil {
				yield(nil, err)
				return
			}
			items, _ := p.split(page)
			for i := range items {
				if !yield(&items[i], nil) {
					return
				}
			}
		}
	}
}

// Pages returns the pages. A page may be empty although another one follows.
func (p *Pages[T, P]) Pages(ctx context.Context) iter.Seq2[*P, error] {
	return func(yield func(*P, error) bool) {
		place := ""
		for {
			page, err := p.fetch(ctx, place)
			if err != nil {
				yield(nil, err)
				return
			}
			if !yield(page, nil) {
				return
			}
			_, next := p.split(page)
			if next == "" || next == place { // the end of a stream keeps its cursor
				return
			}
			place = next
		}
	}
}

// Page returns the first page.
func (p *Pages[T, P]) Page(ctx context.Context) (*P, error) { return p.fetch(ctx, "") }
