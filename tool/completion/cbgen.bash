# SPDX-License-Identifier: Apache-2.0
# Completion of cbgen for bash. Verbs, options and their values come from the help of the program itself.

_cbgen_help() { "${COMP_WORDS[0]}" help "$@" 2>/dev/null; }

# "--name=" or "--name" of every option that the help of verb $1, or the table of analysis options, lists
_cbgen_options() {
  { _cbgen_help "$1"; [[ $1 == cache || $1 == calibrate ]] || _cbgen_help options; } | sed -nE 's/^ +(-[a-z], )?(--[a-z0-9-]+=?).*/\2/p'
}

# the words that "--$1=a|b|c" in the help offers
_cbgen_values() {
  case $1 in
    emit) printf '%s\n' cu data ptx cubin plan ;;
    embed) printf '%s\n' auto always never ;;
    recipe) _cbgen_help recipes | awk '{ print $1 }' ;;
    arch) _cbgen_help architectures | awk '/^  sm_/ && $2 != "refused:" { print $1 }' ;;
    *) { _cbgen_help "$2"; _cbgen_help options; } | sed -nE "s/^ +--$1=([a-z0-9|-]+).*/\1/p" | tr '|' '\n' ;;
  esac
}

_cbgen() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} verb=generate verbs
  verbs=$(_cbgen_help | sed -nE 's/^  ([a-z]+) .*/\1/p')
  COMPREPLY=()
  [[ " ${verbs//$'\n'/ } " == *" ${COMP_WORDS[1]} "* && $COMP_CWORD -gt 1 ]] && verb=${COMP_WORDS[1]}
  # bash splits words at '=': "--type", "=", "f6"
  if [[ $word == '=' ]]; then
    mapfile -t COMPREPLY < <(_cbgen_values "${before#--}" "$verb")
  elif [[ $before == '=' ]]; then
    local name=${COMP_WORDS[COMP_CWORD - 2]#--}
    mapfile -t COMPREPLY < <(compgen -W "$(_cbgen_values "$name" "$verb")" -- "$word")
    [[ $name == output ]] && compopt -o filenames && mapfile -t COMPREPLY < <(compgen -f -- "$word")
  elif [[ $word == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_cbgen_options "$verb") --version" -- "$word")
    [[ ${#COMPREPLY[@]} == 1 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
  elif [[ $verb == cache ]]; then
    local words=
    [[ $COMP_CWORD == 2 ]] && words='stats list show verify fill gpu export import prune clear'
    if [[ ${COMP_WORDS[2]} == @(fill|export|import) && $COMP_CWORD -gt 2 ]]; then
      compopt -o filenames
      mapfile -t COMPREPLY < <(compgen -f -- "$word")
      return
    fi
    [[ $before == show ]] && words=$("${COMP_WORDS[0]}" cache list 2>/dev/null | awk 'NR > 1 { print $1 }')
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$word")
  elif [[ $verb == calibrate ]]; then
    return 0
  elif [[ $verb == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$verbs options recipes architectures shapes exit-codes" -- "$word")
  else
    [[ $verb == diff ]] && mapfile -t COMPREPLY < <(compgen -W "$("${COMP_WORDS[0]}" cache list 2>/dev/null | awk 'NR > 1 { print $1 }')" -- "$word")
    [[ $COMP_CWORD == 1 ]] && mapfile -t COMPREPLY < <(compgen -W "$verbs" -- "$word")
    compopt -o filenames
    local files
    mapfile -t files < <(compgen -f -- "$word")
    COMPREPLY+=("${files[@]}")
  fi
  return 0
}
complete -F _cbgen cbgen
