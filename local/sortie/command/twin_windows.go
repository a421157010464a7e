package command

import "github.com/spf13/cobra"

func (a *app) twins() []*cobra.Command { return nil }
