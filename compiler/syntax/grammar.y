// The grammar of the model language.
//
// It is ambiguous on purpose, as the language itself is: no separator stands
// between statements, so only the precedences below and the production `empty`,
// of the lowest precedence, decide where one ends. Do not tidy it: order of
// productions, right recursion and each `empty` decide which models parse.
//
// Tokens without a precedence of their own stand in the first %right line, so
// that a conflict between them and `empty` is decided for `empty`.
%{
package syntax

%}

%union {
	tok  token
	node any
}

%right <tok> tINT tFLOAT tSEP tSTRING tREL tPEQ tRSTRING tFSTRING tTYPEDEF tAS tENTITY tEXTENDS tEND tIMPLEMENTATION tFOR tINDEX tIMPLEMENT tUSING tWHEN tTRUE tFALSE tIMPORT tIS tDEFINED tDICT tNULL tUNDEF tPARENTS tIF tELSE tELIF '=' '.' '{' '}' ']' ')' tBAD
%nonassoc tLOW
%nonassoc <tok> tMATCHING
%nonassoc <tok> tREGEX
%right <tok> ','
%nonassoc <tok> ':'
%nonassoc <tok> '?'
%left <tok> tOR
%left <tok> tAND
%left <tok> tCMP_OP
%left <tok> tPLUS_OP tMINUS_OP
%left <tok> '*' tDIVISION_OP '%'
%left <tok> tDOUBLE_STAR
%nonassoc <tok> tNOT
%left <tok> tIN
%left <tok> tCID tID
%left <tok> '(' '['
%left <tok> tMLS

%type <node> empty head body top_stmt import statement stmt_list assign for if if_body if_next
%type <node> entity_def entity_body_outer entity_body attr_base_type attr_type_multi attr_type_opt attr_type attr
%type <node> implement_ns_list implement_def implementation_def implementation implementation_head block
%type <node> relation relation_def multi typedef typedef_inner index
%type <node> expression boolean_expression arithmetic_expression operand map_lookup constructor function_call
%type <node> list_def list_comprehension list_comprehension_for_empty list_comprehension_for list_comprehension_guard
%type <node> dict_key pair_list pair_list_empty map_def index_lookup conditional_expression
%type <node> constant constant_list constants wrapped_kwargs param_list_element param_list param_list_empty
%type <node> function_param_list_element function_param_list function_param_list_empty operand_list
%type <node> var_ref attr_ref class_ref class_ref_list ns_ref id_list

%start main

%%

main: head body { on(yylex).finish($1, $2) }

empty: %prec tLOW { $$ = nil }

head: empty { $$ = nil }
	| tMLS { $$ = $1 }

body: top_stmt body { $$ = pushStmt($2, $1) }
	| empty { $$ = nil }

top_stmt: entity_def
	| implement_def
	| implementation_def
	| relation
	| statement
	| typedef
	| index
	| import

import: tIMPORT ns_ref { if $$ = on(yylex).importStmt($1, $2.(Name), nil); $$ == nil { return 1 } }
	| tIMPORT ns_ref tAS tID { if $$ = on(yylex).importStmt($1, $2.(Name), &$4); $$ == nil { return 1 } }

statement: assign
	| for
	| if
	| expression empty { $$ = $1 }

stmt_list: statement stmt_list { $$ = pushStmt($2, $1) }
	| empty { $$ = nil }

assign: var_ref '=' operand { if $$ = on(yylex).assign($1, $2, $3, false); $$ == nil { return 1 } }
	| var_ref tPEQ operand { if $$ = on(yylex).assign($1, $2, $3, true); $$ == nil { return 1 } }

for: tFOR tID tIN operand ':' block { $$ = &For{Var: on(yylex).ident($2), Iter: $4.(Expr), Body: stmts($6), At: on(yylex).coarse($1)} }

if: tIF if_body tEND { n := $2.(*If); n.At = on(yylex).coarse($1); $$ = n }

if_body: expression ':' stmt_list if_next { $$ = &If{Cond: $1.(Expr), Then: stmts($3), Else: stmts($4), At: on(yylex).coarse($2)} }

if_next: empty { $$ = nil }
	| tELSE ':' stmt_list { $$ = $3 }
	| tELIF if_body { $$ = pushStmt(nil, $2) }

entity_def: tENTITY tCID ':' entity_body_outer { if $$ = on(yylex).entity($1, $2, nil, $4); $$ == nil { return 1 } }
	| tENTITY tID ':' entity_body_outer { return on(yylex).badName("entity_def", $2, msgEntityName) }
	| tENTITY tCID tEXTENDS class_ref_list ':' entity_body_outer { if $$ = on(yylex).entity($1, $2, $4, $6); $$ == nil { return 1 } }
	| tENTITY tID tEXTENDS class_ref_list ':' entity_body_outer { return on(yylex).badName("entity_def", $2, msgEntityName) }

entity_body_outer: tMLS entity_body tEND { $$ = &entityBody{doc: $1.text, attributes: $2.([]*Attribute)} }
	| entity_body tEND { $$ = &entityBody{attributes: $1.([]*Attribute)} }
	| tEND { $$ = &entityBody{} }
	| tMLS tEND { $$ = &entityBody{doc: $1.text} }

entity_body: entity_body attr { $$ = append($1.([]*Attribute), $2.(*Attribute)) }
	| attr { $$ = []*Attribute{$1.(*Attribute)} }

attr_base_type: ns_ref { $$ = TypeRef{Name: $1.(Name)} }

attr_type_multi: attr_base_type '[' ']' { t := $1.(TypeRef); t.List = true; $$ = t }

attr_type_opt: attr_type_multi '?' { t := $1.(TypeRef); t.Nullable = true; $$ = t }
	| attr_base_type '?' { t := $1.(TypeRef); t.Nullable = true; $$ = t }

attr_type: attr_type_opt
	| attr_type_multi
	| attr_base_type

attr: attr_type tCID empty { return on(yylex).badName("attr", $2, msgAttributeName) }
	| attr_type tCID '=' constant { return on(yylex).badName("attr", $2, msgAttributeName) }
	| attr_type tCID '=' constant_list { return on(yylex).badName("attr", $2, msgAttributeName) }
	| attr_type tCID '=' tUNDEF { return on(yylex).badName("attr", $2, msgAttributeName) }
	| attr_type tID { if $$ = on(yylex).attribute($1, $2, nil, false); $$ == nil { return 1 } }
	| attr_type tID '=' constant { if $$ = on(yylex).attribute($1, $2, $4, false); $$ == nil { return 1 } }
	| attr_type tID '=' constant_list { if $$ = on(yylex).attribute($1, $2, $4, false); $$ == nil { return 1 } }
	| attr_type tID '=' tUNDEF { if $$ = on(yylex).attribute($1, $2, nil, true); $$ == nil { return 1 } }
	| tDICT empty tCID empty { return on(yylex).badName("attr", $3, msgAttributeName) }
	| tDICT empty tCID '=' map_def { return on(yylex).badName("attr", $3, msgAttributeName) }
	| tDICT empty tCID '=' tNULL { return on(yylex).badName("attr", $3, msgAttributeName) }
	| tDICT '?' tCID empty { return on(yylex).badName("attr", $3, msgAttributeName) }
	| tDICT '?' tCID '=' map_def { return on(yylex).badName("attr", $3, msgAttributeName) }
	| tDICT '?' tCID '=' tNULL { return on(yylex).badName("attr", $3, msgAttributeName) }
	| tDICT tID { if $$ = on(yylex).attribute(on(yylex).dictType($1, false), $2, nil, false); $$ == nil { return 1 } }
	| tDICT tID '=' map_def { if $$ = on(yylex).attribute(on(yylex).dictType($1, false), $2, $4, false); $$ == nil { return 1 } }
	| tDICT tID '=' tNULL { return on(yylex).nullForDict($2) }
	| tDICT '?' tID { if $$ = on(yylex).attribute(on(yylex).dictType($1, true), $3, nil, false); $$ == nil { return 1 } }
	| tDICT '?' tID '=' map_def { if $$ = on(yylex).attribute(on(yylex).dictType($1, true), $3, $5, false); $$ == nil { return 1 } }
	| tDICT '?' tID '=' tNULL { if $$ = on(yylex).attribute(on(yylex).dictType($1, true), $3, on(yylex).null($5), false); $$ == nil { return 1 } }

implement_ns_list: ns_ref { $$ = implementList{using: []Name{$1.(Name)}} }
	| tPARENTS { $$ = implementList{parents: true} }
	| implement_ns_list ',' implement_ns_list { $$ = $1.(implementList).join($3.(implementList)) }

implement_def: tIMPLEMENT class_ref tUSING implement_ns_list empty { if $$ = on(yylex).implement($1, $2, $4, nil, ""); $$ == nil { return 1 } }
	| tIMPLEMENT class_ref tUSING implement_ns_list tMLS { if $$ = on(yylex).implement($1, $2, $4, nil, $5.text); $$ == nil { return 1 } }
	| tIMPLEMENT class_ref tUSING implement_ns_list tWHEN expression empty { if $$ = on(yylex).implement($1, $2, $4, $6, ""); $$ == nil { return 1 } }
	| tIMPLEMENT class_ref tUSING implement_ns_list tWHEN expression tMLS { if $$ = on(yylex).implement($1, $2, $4, $6, $7.text); $$ == nil { return 1 } }

implementation_def: tIMPLEMENTATION tID tFOR class_ref implementation { if $$ = on(yylex).implementation($2, $4, $5); $$ == nil { return 1 } }

implementation: implementation_head block { $$ = &implementationBody{doc: $1.(string), body: stmts($2)} }

implementation_head: ':' { $$ = "" }
	| ':' tMLS { $$ = $2.text }

block: stmt_list tEND { $$ = $1 }

relation: relation_def tMLS { n := $1.(*Relation); n.Doc = $2.text; $$ = n }
	| relation_def empty { $$ = $1 }

relation_def: class_ref '.' tID multi tREL class_ref '.' tID multi { if $$ = on(yylex).relation($2, relEnd($1, &$3, $4), relEnd($6, &$8, $9), nil); $$ == nil { return 1 } }
	| class_ref '.' tID multi tREL class_ref { if $$ = on(yylex).relation($2, relEnd($1, &$3, $4), relEnd($6, nil, nil), nil); $$ == nil { return 1 } }
	| class_ref '.' tID multi operand_list class_ref '.' tID multi { if $$ = on(yylex).relation($2, relEnd($1, &$3, $4), relEnd($6, &$8, $9), $5); $$ == nil { return 1 } }
	| class_ref '.' tID multi operand_list class_ref { if $$ = on(yylex).relation($2, relEnd($1, &$3, $4), relEnd($6, nil, nil), $5); $$ == nil { return 1 } }

multi: '[' tINT ']' { $$ = Multiplicity{multInt($2), multInt($2)} }
	| '[' tINT ':' ']' { $$ = Multiplicity{multInt($2), Unlimited} }
	| '[' tINT ':' tINT ']' { $$ = Multiplicity{multInt($2), multInt($4)} }
	| '[' ':' tINT ']' { $$ = Multiplicity{0, multInt($3)} }

typedef: typedef_inner empty { $$ = $1 }
	| typedef_inner tMLS { n := $1.(*Typedef); n.Doc = $2.text; $$ = n }

typedef_inner: tTYPEDEF tID tAS ns_ref tMATCHING expression { if $$ = on(yylex).typedef($2, $4.(Name), $6.(Expr)); $$ == nil { return 1 } }
	| tTYPEDEF tID tAS ns_ref tREGEX { if $$ = on(yylex).typedef($2, $4.(Name), on(yylex).regex($5)); $$ == nil { return 1 } }
	| tTYPEDEF tCID tAS constructor { return on(yylex).badName("typedef_inner", $2, msgDefaultConstructor) }

index: tINDEX class_ref '(' id_list ')' { $$ = &Index{Entity: $2.(Name), Attributes: reversed($4.([]Ident)), At: on(yylex).coarse($1)} }

expression: boolean_expression
	| constant
	| function_call
	| var_ref empty { $$ = $1 }
	| constructor
	| list_def
	| list_comprehension
	| map_def
	| map_lookup empty { $$ = $1 }
	| index_lookup
	| conditional_expression
	| arithmetic_expression
	| '(' expression ')' { $$ = $2 }

boolean_expression: expression tCMP_OP expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression tIN expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression tAND expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression tOR expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression tNOT tIN expression { p := on(yylex); $$ = &Not{X: &Binary{Op: "in", L: $1.(Expr), R: $4.(Expr), Negated: true, At: p.coarse($3)}, At: p.coarse($2)} }
	| tNOT expression { $$ = &Not{X: $2.(Expr), At: on(yylex).coarse($1)} }
	| var_ref '.' tID tIS tDEFINED { p := on(yylex); $$ = &IsDefined{X: $1.(Expr), Attr: p.ident($3), At: p.coarse($2)} }
	| tID tIS tDEFINED { p := on(yylex); $$ = &IsDefined{Attr: p.ident($1), At: p.coarse($1)} }

arithmetic_expression: expression tPLUS_OP expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression tMINUS_OP expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression tDIVISION_OP expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression '*' expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression '%' expression { $$ = on(yylex).binary($1, $2, $3) }
	| expression tDOUBLE_STAR expression { $$ = on(yylex).binary($1, $2, $3) }

boolean_expression: map_lookup tIS tDEFINED { $$ = on(yylex).keyDefined($1.(*MapLookup), $2) }

operand: expression empty { $$ = $1 }

map_lookup: attr_ref '[' operand ']' { $$ = mapLookup($1, $3) }
	| var_ref '[' operand ']' { $$ = mapLookup($1, $3) }
	| map_lookup '[' operand ']' { $$ = mapLookup($1, $3) }

constructor: class_ref '(' param_list ')' { if $$ = on(yylex).construct($1.(Name), $2, $3); $$ == nil { return 1 } }

function_call: ns_ref '(' function_param_list ')' { if $$ = on(yylex).call($1.(Name), $3); $$ == nil { return 1 } }
	| attr_ref '(' function_param_list ')' { return on(yylex).namespaceAccess("function_call", refText($1), refSpan($1)) }

list_def: '[' operand_list ']' { $$ = &List{Items: exprs($2), At: on(yylex).coarse($1)} }

list_comprehension: '[' expression list_comprehension_for list_comprehension_guard ']' { $$ = on(yylex).comprehension($1, $2, $3, $4) }

list_comprehension_for_empty: empty { $$ = nil }

list_comprehension_for: tFOR tID tIN expression list_comprehension_for_empty { $$ = []forClause{{on(yylex).ident($2), $4.(Expr)}} }
	| tFOR tID tIN expression list_comprehension_for { $$ = append($5.([]forClause), forClause{on(yylex).ident($2), $4.(Expr)}) }

list_comprehension_guard: empty { $$ = nil }
	| tIF expression list_comprehension_guard { $$ = on(yylex).guard($1, $2, $3) }

dict_key: tRSTRING { $$ = $1 }
	| tSTRING { if $$ = on(yylex).dictKey($1); $$ == nil { return 1 } }

pair_list: dict_key ':' operand ',' pair_list { $$ = pushPair($5, $1, $3) }
	| dict_key ':' operand empty pair_list_empty { $$ = pushPair($5, $1, $3) }
	| pair_list_empty

pair_list_empty: empty { $$ = []DictEntry(nil) }

map_def: '{' pair_list '}' { if $$ = on(yylex).dict($1, $2); $$ == nil { return 1 } }

index_lookup: class_ref '[' param_list ']' { p := on(yylex); a := $3.(*arguments).ordered(); $$ = &Lookup{Type: $1.(Name), Named: a.named, Splats: a.splats, At: p.coarse($2)} }
	| attr_ref '[' param_list ']' { p := on(yylex); a := $3.(*arguments).ordered(); r := $1.(*AttrRef); $$ = &ShortLookup{X: r.X, Rel: r.Attr, Named: a.named, Splats: a.splats, At: p.coarse($2)} }

conditional_expression: expression '?' expression ':' expression { $$ = &Conditional{Cond: $1.(Expr), Then: $3.(Expr), Else: $5.(Expr), At: $1.(Expr).Where()} }

constant: tINT { $$ = on(yylex).integer($1) }
	| tFLOAT { $$ = on(yylex).float($1) }
	| tNULL { $$ = on(yylex).null($1) }
	| tREGEX { $$ = on(yylex).regex($1) }
	| tTRUE { $$ = on(yylex).boolean($1, true) }
	| tFALSE { $$ = on(yylex).boolean($1, false) }
	| tSTRING { $$ = on(yylex).stringNode($1, false) }
	| tFSTRING { if $$ = on(yylex).fstring($1); $$ == nil { return 1 } }
	| tRSTRING { $$ = &Literal{Kind: StringLiteral, Str: $1.text, At: on(yylex).span($1)} }
	| tMLS { $$ = on(yylex).stringNode($1, true) }

constant_list: '[' constants ']' { $$ = &List{Items: exprs($2), At: on(yylex).coarse($1)} }

constants: constant { $$ = pushExpr(nil, $1) }
	| { $$ = nil }
	| constant ',' constants { $$ = pushExpr($3, $1) }

wrapped_kwargs: tDOUBLE_STAR operand { $$ = Splat{$2.(Expr), on(yylex).coarse($1)} }

param_list_element: tID '=' operand { $$ = &Argument{on(yylex).ident($1), $3.(Expr)} }
	| wrapped_kwargs

param_list: param_list_empty

param_list_empty: empty { $$ = &arguments{} }

param_list: param_list_element empty param_list_empty { $$ = $3.(*arguments).push($1) }
	| param_list_element ',' param_list { $$ = $3.(*arguments).push($1) }

function_param_list_element: param_list_element
	| operand

function_param_list: function_param_list_empty

function_param_list_empty: empty { $$ = &arguments{} }

function_param_list: function_param_list_element empty function_param_list_empty { $$ = $3.(*arguments).push($1) }
	| function_param_list_element ',' function_param_list { $$ = $3.(*arguments).push($1) }

operand_list: operand ',' operand_list { $$ = pushExpr($3, $1) }
	| operand { $$ = pushExpr(nil, $1) }
	| empty { $$ = nil }

var_ref: attr_ref empty { $$ = $1 }

attr_ref: var_ref '.' tID { $$ = on(yylex).attrRef($1.(Expr), $2, $3) }

var_ref: ns_ref empty { $$ = &Ref{Name: $1.(Name)} }

class_ref: tCID { $$ = on(yylex).name($1) }
	| ns_ref tSEP tCID { $$ = on(yylex).join($1.(Name), $3) }
	| var_ref '.' tCID { p := on(yylex); s := refSpan($1); s.End = $3.end; return p.namespaceAccess("class_ref", refText($1) + "." + $3.text, s) }

class_ref_list: class_ref ',' class_ref_list { $$ = append($3.([]Name), $1.(Name)) }
	| var_ref ',' class_ref_list { return on(yylex).badClass($1) }
	| class_ref { $$ = []Name{$1.(Name)} }
	| var_ref { return on(yylex).badClass($1) }

ns_ref: ns_ref tSEP tID { $$ = on(yylex).join($1.(Name), $3) }
	| tID { $$ = on(yylex).name($1) }

id_list: tID ',' id_list { $$ = append($3.([]Ident), on(yylex).ident($1)) }
	| tID { $$ = []Ident{on(yylex).ident($1)} }
