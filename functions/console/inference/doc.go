// Package inference has the pages of models, engines, sessions and budgets, and the playground.
package inference
