package api

import "github.com/gin-gonic/gin"

const docsPath = "/api/v2/docs"

type docs struct {
	version string
	calls   []*declaration
}

func (d *docs) serve(g *gin.Context) {}
