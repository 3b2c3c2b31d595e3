# SPDX-License-Identifier: Apache-2.0
# Completion of cbgen for fish. Verbs, options and their texts come from the help of the program itself.

function __cbgen_verbs
    cbgen help 2>/dev/null | string match -rg '^  ([a-z]+) +(.*)$' | while read -l name
        read -l text
        printf '%s\t%s\n' $name $text
    end
end

function __cbgen_verb
    set -l words (commandline -opc)
    set -l second $words[2]
    if contains -- "$second" (__cbgen_verbs | string replace -r '\t.*' '')
        echo $second
    else
        echo generate
    end
end

function __cbgen_options
    begin
        cbgen help (__cbgen_verb)
        contains -- (__cbgen_verb) cache calibrate; or cbgen help options
    end 2>/dev/null | while read -l line
        set -l parts (string match -rg '^ *(?:-[a-z], )?(--[a-z0-9-]+)(=[^ ]*)? +(.*)$' -- $line)
        or continue
        set -l values (string match -rg '^=(.+\|.+)$' -- "$parts[2]")
        if test -n "$values"
            for value in (string split '|' -- $values)
                printf '%s=%s\t%s\n' $parts[1] $value "$parts[3]"
            end
        else
            printf '%s%s\t%s\n' $parts[1] (string match -rg '^(=)' -- "$parts[2]") "$parts[3]"
        end
    end
end

complete -c cbgen -n 'test (count (commandline -opc)) -eq 1' -a '(__cbgen_verbs)'
complete -c cbgen -n '__fish_seen_subcommand_from help' -f -a 'options recipes architectures shapes exit-codes (__cbgen_verbs)'
complete -c cbgen -n '__fish_seen_subcommand_from cache calibrate' -f
complete -c cbgen -n '__fish_seen_subcommand_from cache; and test (count (commandline -opc)) -eq 2' -f \
    -a 'stats list show verify fill gpu export import prune clear'
complete -c cbgen -n '__fish_seen_subcommand_from cache; and __fish_seen_subcommand_from fill export import' -F
complete -c cbgen -n '__fish_seen_subcommand_from cache; and contains show (commandline -opc)' -f \
    -a '(cbgen cache list 2>/dev/null | string match -rg "^([0-9a-f]{16}) ")'
complete -c cbgen -n '__fish_seen_subcommand_from diff' \
    -a '(cbgen cache list 2>/dev/null | string match -rg "^([0-9a-f]{16}) ")'
complete -c cbgen -n 'string match -q -- "-*" (commandline -ct)' -f -a '(__cbgen_options)'
complete -c cbgen -s o -r -d 'write to a file'
