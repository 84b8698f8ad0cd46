package console

import (
	"errors"
	"net/http"

	"ordain.dev/ordain/server/control"
)

func isSourceProblem(err error) bool {
	var p *control.SourceProblem
	return errors.As(err, &p)
}

// formProblem says what is wrong with the form of a new environment, and at which field; "name" is that of all that
// concerns no part of the source.
func (c *console) formProblem(r *http.Request, err error) (code int, problem *settingsProblem) {
	problem = &settingsProblem{Form: "name", Values: r.PostForm}
	var source *control.SourceProblem
	if errors.As(err, &source) {
		problem.Form = string(source.Field)
	}
	_, _, problem.Text, problem.Hint = c.meaning(r, err)
	return http.StatusUnprocessableEntity, problem
}
